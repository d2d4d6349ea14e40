// In a few runs, the main loop of a process does not reach the store for long, and its lock thread does. A job whose run has ended must move on
// to another process all the same, and one whose handler goes on must stay.
import { CUTS } from './link.mjs';

const SHARE = 0.02;
const LOCK_MS = 1000;
const SWEEP_MS = 200;
/** The call is given up, two looks follow, the lock thread lets go of the lock, and a sweep finds it. */
const MOVES_ON_MS = 4 * LOCK_MS + SWEEP_MS;

/** A plan of its own kind for this seed; undefined for most. */
export function loopCutOf(seed, random) {
  if (!random.chance(SHARE)) return undefined;
  const process = { prefetch: 0, hasThread: random.chance(0.8), stands: false, isTimed: false };
  const job = { attempts: 2, delayMs: 0, priority: 0, lockKey: undefined, by: 1 };
  const firstMs = random.between(20, 300);
  // Either an outcome does not reach the store, or the reply of a claim does not come back.
  const losesClaim = random.chance(0.4);
  const cutAt = 200 + (losesClaim ? random.between(5, 45) : random.between(0, 1.2) * firstMs);
  const restMs = [{ kind: 'sleep', ms: 50 }];
  // The other process comes later, so that the first one gets both jobs.
  const delay = { what: 'calls', at: 0, process: 1, kind: 'slow request', verb: 'openSession', count: 1, ms: 500, part: 'both' };
  const cut = { what: 'cut', at: cutAt, process: 0, mode: random.pick(CUTS), ms: 2 * MOVES_ON_MS, part: 'main' };
  const lost = { what: 'calls', at: 198, process: 0, kind: 'lost reply', verb: 'claim', count: 1, ms: 0, part: 'main' };
  return {
    seed,
    lockMs: LOCK_MS,
    faultsMs: 3 * MOVES_ON_MS,
    renewMs: undefined,
    sweepMs: SWEEP_MS,
    maxStalls: 3,
    hints: random.pick(['none', 'sure']),
    graceMs: 500,
    lanes: random.pick([1, 2]),
    movesOnMs: MOVES_ON_MS,
    processes: [
      { ...process, name: 'a', concurrency: 2 },
      { ...process, name: 'b', concurrency: 1 },
    ],
    jobs: [
      { ...job, index: 0, id: 'job-1', at: 200, runs: [[{ kind: 'sleep', ms: firstMs }], restMs] },
      { ...job, index: 1, id: 'job-2', at: 150, runs: [[{ kind: 'sleep', ms: 2.5 * MOVES_ON_MS }], restMs] },
    ],
    names: [],
    commands: [],
    faults: [delay, cut, ...(losesClaim ? [lost] : [])].map((fault, index) => ({ index, ...fault })),
  };
}
