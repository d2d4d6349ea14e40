// A test has as much time as this machine needs for it at the moment.
import { vi } from 'vitest';
import { paced } from './pace.js';

const PATIENCE_MS = 45_000;

vi.setConfig({ testTimeout: paced(PATIENCE_MS), hookTimeout: paced(PATIENCE_MS) });
