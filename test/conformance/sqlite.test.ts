import { describe, it } from 'vitest';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { conformance, ManualClock } from '../../src/testing/index.js';
import { sqliteUnderTest } from './sqlite-under-test.mjs';

conformance({
  describe,
  it,
  ...sqliteUnderTest({ SqliteStore, ManualClock }),
});
