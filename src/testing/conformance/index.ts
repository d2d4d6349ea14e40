// The conformance suite: every store engine must pass it. It has one file per facet of the contract, uses only
// src/store/contract/index.ts, and must never know an engine.
// Our own tests call it for each store of Holdfast. Authors of other stores call it too: `conformance({ describe, it, name,
// capabilities, open })` needs nothing but a test runner.
import assert from 'node:assert/strict';
import { adding } from './adding.js';
import { caps } from './caps.js';
import { changing } from './changing.js';
import { claiming } from './claiming.js';
import { closing } from './closing.js';
import { control } from './control.js';
import { crowds } from './crowds.js';
import { events } from './events.js';
import { exclusionRaces } from './exclusion-races.js';
import { fencing } from './fencing.js';
import { hints } from './hints.js';
import { inspecting } from './inspecting.js';
import { isolation } from './isolation.js';
import { keeping } from './keeping.js';
import { keys } from './keys.js';
import { lanes } from './lanes.js';
import { large } from './large.js';
import { lockLines } from './lock-lines.js';
import { locks } from './locks.js';
import { losses } from './losses.js';
import { model } from './model.js';
import { namedLocks } from './named-locks.js';
import { ordering } from './ordering.js';
import { races } from './races.js';
import { replays } from './replays.js';
import { revoking } from './revoking.js';
import type { ConformanceOptions } from './runner.js';
import { sessions } from './sessions.js';
import { settling } from './settling.js';
import { define, type Facet } from './suite.js';
import { sweeping } from './sweeping.js';
import { taking } from './taking.js';
import { values } from './values.js';
import { waking } from './waking.js';

export type { ConformanceOptions, StoreUnderTest, TestCase, TestRunner } from './runner.js';

const FACETS: Record<string, Facet> = {
  adding,
  ordering,
  claiming,
  'taking by id': taking,
  'lock keys': keys,
  caps,
  settling,
  keeping,
  fencing,
  replays,
  lanes,
  sessions,
  sweeping,
  losses,
  hints,
  locks,
  revoking,
  'named locks': namedLocks,
  'lock waiters': lockLines,
  control,
  changing,
  inspecting,
  events,
  waking,
  values,
  'large payloads': large,
  isolation,
  closing,
  races,
  'exclusion races': exclusionRaces,
  crowds,
  'random work': model,
};

/** Defines the tests that a store must pass, in the given runner. */
export function conformance(options: ConformanceOptions): void {
  options.describe(`S4-13 ${options.name} conforms to the store contract`, () => {
    define(options, 'capabilities', (test) => {
      test('the store has the capabilities that the harness declares', async ({ store }) =>
        assert.deepEqual(store.capabilities, options.capabilities));
    });
    for (const [name, facet] of Object.entries(FACETS)) define(options, name, facet);
  });
}
