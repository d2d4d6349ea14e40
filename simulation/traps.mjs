// Plans that chance draws too rarely: a reply of the store comes late, its process is cut off at once, and somebody else is there to take over.
// Whoever counts trust from the reply, or from a later try, still believes in its lock then.

const LOCK_MS = 4000;
const CUTS = ['silent', 'refused'];

/** By kind: what the victim is like, its handler and what goes wrong. The job is added at `at`, and lasts longer than its lock. */
const TRAPS = {
  /** A new session. */
  opens: (random) => {
    const lateMs = random.between(0.3, 0.8) * LOCK_MS;
    return {
      at: random.between(5, 50),
      rivalMs: lateMs + random.between(200, 600),
      faults: [late('openSession', 0, lateMs), cut(random, lateMs + random.between(15, 60))],
    };
  },
  /** A timed claim, which is repeated. */
  claims: (random, at) => ({
    victim: { isTimed: true },
    faults: [lost('claim', at - 1), late('claim', at - 1, random.between(0.2, 0.6) * LOCK_MS)],
  }),
  /** An extension of a timed lock. */
  extends: (random, at) => ({
    victim: { isTimed: true },
    deeds: [{ kind: 'extend', ms: random.between(0.3, 0.8) * LOCK_MS }],
    faults: [late('extend', at, random.between(0.2, 0.6) * LOCK_MS)],
  }),
  /** A grant, while others may take the victim for dead. */
  'is granted': (random, at, graceMs) => ({
    hints: 'fallible',
    faults: [late('claim', at - 1, random.between(1, 2) * graceMs), cut(random, at + random.between(10, 30))],
  }),
  /** The question whether they do. */
  asks: (random, at, graceMs) => {
    const askedAt = at + random.between(300, 900);
    return {
      hints: 'fallible',
      victim: { hasThread: random.chance(0.5) },
      faults: [late('checkSessions', askedAt, random.between(1, 2) * graceMs), cut(random, askedAt + graceMs / 4 + 10)],
    };
  },
  /** A leader. */
  leads: (random, at) => ({
    hints: 'fallible',
    victim: { hasThread: random.chance(0.5), stands: true, concurrency: 0 },
    rival: { stands: true },
    faults: [cut(random, at + random.between(300, 1500))],
  }),
};

/** A plan of its own kind for this seed; undefined for most. */
export function trapOf(seed, random) {
  if (!random.chance(0.15)) return undefined;
  const graceMs = random.pick([500, 700]);
  const drawnAt = random.between(150, 250);
  const trap = TRAPS[random.pick(Object.keys(TRAPS))](random, drawnAt, graceMs);
  const { at = drawnAt, rivalMs = drawnAt + random.between(100, 400), deeds = [] } = trap;
  const process = { concurrency: 1, prefetch: 0, hasThread: false, stands: false, isTimed: false };
  const runs = [[...deeds, { kind: 'sleep', ms: 3 * LOCK_MS }], [{ kind: 'sleep', ms: 50 }]];
  const job = { index: 0, id: 'job-1', by: 1, at, attempts: 2, delayMs: 0, priority: 0, lockKey: undefined, runs };
  // So that the victim gets the job, its rival comes later.
  const delay = { ...late('openSession', 0, rivalMs), kind: 'slow request', process: 1 };
  return {
    seed,
    lockMs: LOCK_MS,
    faultsMs: 4 * LOCK_MS,
    renewMs: undefined,
    sweepMs: 200,
    maxStalls: 3,
    hints: trap.hints ?? 'none',
    graceMs,
    lanes: 1,
    processes: [
      { ...process, name: 'a', ...trap.victim },
      { ...process, name: 'b', ...trap.rival },
    ],
    jobs: [job],
    names: [],
    commands: [],
    faults: [delay, ...trap.faults].map((fault, index) => ({ index, ...fault })),
  };
}

/** The reply to the next call of the victim. */
function late(verb, at, ms) {
  return { what: 'calls', at, process: 0, kind: 'slow reply', verb, count: 1, ms, part: 'both' };
}

function lost(verb, at) {
  return { ...late(verb, at, 0), kind: 'lost reply' };
}

function cut(random, at) {
  return { what: 'cut', at, process: 0, mode: random.pick(CUTS), ms: 3 * LOCK_MS, part: 'both' };
}
