// The suite can fail: for every defect, the tests that are there for it go red.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../src/runtime/clock.js';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { conformance, ManualClock } from '../../src/testing/index.js';
import { bent, DEFECTS } from './defects.js';
import { DEDUPLICATION_DEFECTS } from './deduplication-defects.js';
import { EXCLUSION_DEFECTS } from './exclusion-defects.js';
import { FAMILY_DEFECTS } from './family-defects.js';
import { GROUP_DEFECTS } from './group-defects.js';
import { RATE_DEFECTS } from './rate-defects.js';
import { SCHEDULE_DEFECTS } from './schedule-defects.js';
import { STEP_DEFECTS } from './step-defects.js';

interface Collected {
  title: string;
  body: () => Promise<void>;
}

interface Making {
  bend?: (right: Store) => Store;
  clockOf?: (clock: ManualClock) => Clock;
}

/** A runner that only collects, so that the tests can be run one by one. */
function collect({ bend = (right) => right, clockOf = (clock) => clock }: Making = {}): Collected[] {
  const collected: Collected[] = [];
  conformance({
    describe: (_, body) => body(),
    it: (title, body) => collected.push({ title, body }),
    name: 'a defective store',
    capabilities: new MemoryStore({ lanes: 2 }).capabilities,
    clock: 'manual',
    async open() {
      const clock = new ManualClock();
      const right = new MemoryStore({ clock: clockOf(clock), lanes: 2 });
      await right.open();
      const advance = async (ms: number): Promise<void> => clock.advance(ms);
      return { store: bend(right), advance, stepWall: (ms) => clock.stepWall(ms), close: () => right.close() };
    },
  });
  return collected;
}

/** How much faster the clock goes by which tests of the suite give up waiting: on a defective store, some wait in vain. */
const HASTE = 100;

function giveUpSoon(): void {
  const began = performance.now();
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => began + (now() - began) * HASTE);
}

afterEach(() => vi.restoreAllMocks());

async function redOf(tests: Collected[]): Promise<string[]> {
  const red: string[] = [];
  for (const { title, body } of tests) await body().catch(() => red.push(title));
  return red;
}

describe('the conformance suite', () => {
  it('needs no more than two functions, and finds nothing wrong with a right store', async () => {
    const tests = collect();
    expect(tests.length).toBeGreaterThan(200);
    expect(await redOf(tests)).toEqual([]);
  });

  it('finds nothing wrong with a wrapped store as long as nothing is bent', async () => {
    expect(await redOf(collect({ bend: (right) => bent(right, { bend: () => ({}) }) }))).toEqual([]);
  });

  it('names every test once, and says why one is left out', () => {
    const titles = collect().map(({ title }) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
    expect(titles).toContainEqual(expect.stringMatching(/\(not on a defective store: one process only\)$/));
    expect(titles).toContainEqual(expect.stringMatching(/\(not on a defective store: nothing outlives its process\)$/));
  });

  const defects = {
    ...DEFECTS,
    ...EXCLUSION_DEFECTS,
    ...DEDUPLICATION_DEFECTS,
    ...SCHEDULE_DEFECTS,
    ...RATE_DEFECTS,
    ...GROUP_DEFECTS,
    ...FAMILY_DEFECTS,
    ...STEP_DEFECTS,
  };
  for (const [name, defect] of Object.entries(defects)) {
    it(`turns red on a store in which ${name}`, async () => {
      const tests = collect({ bend: (right) => bent(right, defect) }).filter(({ title }) => defect.noticedBy.test(title));
      expect(tests).not.toHaveLength(0);
      giveUpSoon();
      expect(await redOf(tests)).not.toEqual([]);
    });
  }

  it('turns red on a store that measures locks with the wall clock', async () => {
    const clockOf = (clock: ManualClock): Clock => ({ wall: () => clock.wall(), monotonic: () => clock.wall() });
    const tests = collect({ clockOf }).filter(({ title }) => /steps of the wall clock/.test(title));
    expect(await redOf(tests)).toHaveLength(1);
  });
});
