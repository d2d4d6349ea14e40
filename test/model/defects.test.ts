// The comparison can fail: it finds the defects that the conformance suite is tried on, but for those that no single line of calls to
// one queue can show.
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { bent, DEFECTS, type Defect } from '../conformance/defects.js';
import { DEDUPLICATION_DEFECTS } from '../conformance/deduplication-defects.js';
import { EXCLUSION_DEFECTS } from '../conformance/exclusion-defects.js';
import { FAMILY_DEFECTS } from '../conformance/family-defects.js';
import { GROUP_DEFECTS } from '../conformance/group-defects.js';
import { RATE_DEFECTS } from '../conformance/rate-defects.js';
import { findDifference } from './check.js';
import { findFamilyDifference } from './families.js';

const OUT_OF_SIGHT: Record<string, string> = {
  'renewal reaches into other queues': 'one queue',
  'a sweep of one queue sweeps all': 'one queue',
  'two claims at once get the same jobs': 'one call at a time',
  'calls of all lanes are numbered as one': 'one call at a time',
  'the second lane is not remembered': 'one call at a time',
  'an add looks for the owner first and adds later': 'one call at a time',
  'a watcher that stopped is called on': 'no watchers',
  'nobody is woken': 'no watchers',
  'only events wake': 'no watchers',
  'JSON is read and written again': 'plain texts',
  'ids are compared without case': 'plain texts',
  'keys are compared without case': 'plain texts',
  'groups are compared without case': 'plain texts',
  'a claim reads the active jobs of a group first and takes its jobs later': 'one call at a time',
  'a closed store goes on answering': 'never closed',
  'a sweep of named locks knows no limit': 'sweeps go on until nothing is dead',
};

function difference(defect: Pick<Defect, 'bend'>, shrink: boolean, runs = 10_000): Promise<string | undefined> {
  const clock = new ManualClock();
  const contender = async () => ({ clock, connections: [bent(new MemoryStore({ clock }), defect)] });
  return findDifference(contender, { runs, shrink });
}

test('a store in which nothing is bent does not differ', async () => {
  expect(await difference({ bend: () => ({}) }, false, 150)).toBeUndefined();
});

test('what it prints is all that is needed: how to repeat it, a short sequence, and what both sides say', async () => {
  const printed = (await difference(DEFECTS['released jobs go to the back'] as Defect, true)) ?? '';
  expect(printed).toMatch(/^HOLDFAST_MODEL_SEED=\d+ HOLDFAST_MODEL_PATH=[\d:]+ /);
  expect(printed).toMatch(/settle .*kind: 'release'/);
  expect(printed).toMatch(/memory has .*, the store .*/);
  expect(printed.match(/^ {2}\d+\. /gm)?.length).toBeLessThan(16);
});

describe('it finds a store in which', () => {
  for (const [name, defect] of Object.entries({
    ...DEFECTS,
    ...EXCLUSION_DEFECTS,
    ...DEDUPLICATION_DEFECTS,
    ...GROUP_DEFECTS,
    ...RATE_DEFECTS,
  })) {
    if (OUT_OF_SIGHT[name] !== undefined) continue;
    test(`${name}`, async () => expect(await difference(defect, false)).toMatch(/HOLDFAST_MODEL_SEED/));
  }
});

/** The rarest defect is found within this many walks. */
const WALKS = 40;

function familyDifference(defect: Pick<Defect, 'bend'>, runs: number): Promise<string | undefined> {
  return findFamilyDifference(
    async () => {
      const clock = new ManualClock();
      return { clock, connections: [bent(new MemoryStore({ clock }), defect)] };
    },
    { runs },
  );
}

test('families of a store in which nothing is bent do not differ', async () => {
  expect(await familyDifference({ bend: () => ({}) }, 10)).toBeUndefined();
});

describe('the walk through families finds a store in which', () => {
  for (const [name, defect] of Object.entries(FAMILY_DEFECTS)) {
    test(`${name}`, async () => expect(await familyDifference(defect, WALKS)).toMatch(/HOLDFAST_MODEL_SEED/));
  }
});
