// The conformance suite: every store engine must pass it. It has one file per facet of the contract, uses only
// src/store/contract/index.ts, and must never know an engine.
// Our own tests call it for each store of Holdfast. Authors of other stores call it too: `conformance({ describe, it, name,
// capabilities, open })` needs nothing but a test runner. `levels` names the parts to run (levels.ts).
import assert from 'node:assert/strict';
import { adding } from './adding.js';
import { cancelling } from './cancelling.js';
import { caps } from './caps.js';
import { changing } from './changing.js';
import { claiming } from './claiming.js';
import { closing } from './closing.js';
import { control } from './control.js';
import { crowds } from './crowds.js';
import { deadLetters } from './dead-letters.js';
import { deduplication } from './deduplication.js';
import { deduplicationEnds } from './deduplication-ends.js';
import { events } from './events.js';
import { exclusionRaces } from './exclusion-races.js';
import { families } from './families.js';
import { familyRemovals } from './family-removals.js';
import { fencing } from './fencing.js';
import { groups } from './groups.js';
import { groupSettings } from './group-settings.js';
import { hints } from './hints.js';
import { inspecting } from './inspecting.js';
import { isolation } from './isolation.js';
import { keeping } from './keeping.js';
import { keys } from './keys.js';
import { lanes } from './lanes.js';
import { large } from './large.js';
import { lockLines } from './lock-lines.js';
import { type Level, levelsToRun } from './levels.js';
import { locks } from './locks.js';
import { losses } from './losses.js';
import { metrics } from './metrics.js';
import { model } from './model.js';
import { namedLocks } from './named-locks.js';
import { ordering } from './ordering.js';
import { ownEvents } from './own-events.js';
import { races } from './races.js';
import { rates } from './rates.js';
import { replays } from './replays.js';
import { revoking } from './revoking.js';
import { checkClock, type ConformanceOptions } from './runner.js';
import { scheduleRuns } from './schedule-runs.js';
import { scheduling } from './schedules.js';
import { sessions } from './sessions.js';
import { settling } from './settling.js';
import { steps } from './steps.js';
import { define, type Facet } from './suite.js';
import { sweeping } from './sweeping.js';
import { taking } from './taking.js';
import { values } from './values.js';
import { waking } from './waking.js';

export { type Level, LEVELS } from './levels.js';
export type { ConformanceOptions, StoreUnderTest, TestCase, TestRunner } from './runner.js';

/** The facets, each with the level that all its tests need. */
const FACETS: [title: string, level: Level, facet: Facet][] = [
  ['adding', 'core', adding],
  ['ordering', 'core', ordering],
  ['claiming', 'core', claiming],
  ['taking by id', 'claims-by-id', taking],
  ['lock keys', 'keys', keys],
  ['deduplication', 'deduplication', deduplication],
  ['ends of deduplication', 'deduplication', deduplicationEnds],
  ['schedules', 'schedules', scheduling],
  ['runs of schedules', 'schedules', scheduleRuns],
  ['groups', 'groups', groups],
  ['settings of groups', 'groups', groupSettings],
  ['caps', 'caps', caps],
  ['rates', 'rates', rates],
  ['metrics', 'metrics', metrics],
  ['events of users', 'own-events', ownEvents],
  ['families', 'families', families],
  ['removals in families', 'families', familyRemovals],
  ['dead letters', 'families', deadLetters],
  ['steps', 'steps', steps],
  ['cancelling', 'cancelling', cancelling],
  ['settling', 'core', settling],
  ['keeping', 'keeping', keeping],
  ['fencing', 'core', fencing],
  ['replays', 'core', replays],
  ['lanes', 'lanes', lanes],
  ['sessions', 'core', sessions],
  ['sweeping', 'core', sweeping],
  ['losses', 'core', losses],
  ['hints', 'hints', hints],
  ['locks', 'timed-locks', locks],
  ['revoking', 'changing', revoking],
  ['named locks', 'named-locks', namedLocks],
  ['lock waiters', 'named-locks', lockLines],
  ['control', 'control', control],
  ['changing', 'changing', changing],
  ['inspecting', 'inspecting', inspecting],
  ['events', 'core', events],
  ['waking', 'waking', waking],
  ['values', 'core', values],
  ['large payloads', 'large', large],
  ['isolation', 'core', isolation],
  ['closing', 'core', closing],
  ['races', 'core', races],
  ['exclusion races', 'core', exclusionRaces],
  ['crowds', 'together', crowds],
  ['random work', 'together', model],
];

/** Defines the tests that a store must pass, in the given runner. */
export function conformance(options: ConformanceOptions): void {
  checkClock(options);
  const levels = levelsToRun(options.levels);
  options.describe(`S4-13 ${options.name} conforms to the store contract`, () => {
    define(options, levels, 'capabilities', (test) => {
      test('the store has the capabilities that the harness declares', async ({ store }) =>
        assert.deepEqual(store.capabilities, options.capabilities));
    });
    for (const [title, level, facet] of FACETS) define(options, levels, title, (test) => facet(test.needs(level)));
  });
}
