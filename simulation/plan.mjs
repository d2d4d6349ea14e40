// What a seed stands for: who takes part, what they do, and what goes wrong when. Everything is drawn beforehand, so that a fault can be left
// out and the rest stays as it is.
import { CALL_FAULTS, CUTS } from './link.mjs';
import { loopCutOf } from './loop-cut-plan.mjs';
import { Random } from './random.mjs';
import { addSteps, withoutSteps } from './step-plan.mjs';
import { trapOf } from './traps.mjs';

const NAMES = ['a', 'b', 'c', 'd'];

export function planOf(seed, store = 'memory') {
  const random = new Random(seed);
  if (store === 'split') return splitOf(drawnOf(seed, random), random.fork('split'));
  return loopCutOf(seed, random.fork('loop cut')) ?? trapOf(seed, random.fork('trap')) ?? drawnOf(seed, random);
}

/** Two servers: a plan of flows, with faults that strike one of the servers, or the way to it. */
function splitOf(planned, random) {
  const { groupConcurrency: _group, limiter: _limiter, ...drawn } = withoutSteps(planned);
  const lockMs = Math.min(1000, drawn.lockMs);
  const faultsMs = random.between(2, 5) * lockMs + 1000;
  const plan = {
    ...drawn,
    lockMs,
    faultsMs,
    renewMs: undefined,
    hints: 'sure',
    lanes: 1,
    schedules: [],
    names: [],
    commands: [],
    faults: [],
  };
  plan.jobs = [jobOf(0, random.fork('job'), plan)];
  const focus = focusOf(random.fork('focus'), plan);
  const drawnFaults = listOf(1 + random.int(6), (index) => faultOf(index, random.fork(`fault ${index}`), plan, focus));
  plan.faults = drawnFaults.map((fault) => (OF_A_SERVER.has(fault.what) ? { ...fault, server: random.int(2) } : fault));
  const push = (fault) => plan.faults.push({ index: plan.faults.length, process: 0, at: random.between(10, faultsMs), ...fault });
  if (random.chance(0.4)) push({ what: 'outage', server: random.int(2), ms: random.between(0.2, 2) * lockMs });
  for (let left = random.int(5); left > 0; left -= 1) push(relayFaultOf(random, plan));
  for (const failover of random.chance(0.35) ? failoverAt(random, plan) : []) push({ ...failover, server: random.int(2) });
  const quietMs = faultsMs + RECOVERY_LOCKS * lockMs + GIVEN_UP_MS;
  plan.flows = treesOf(random.fork('flows'), plan).map((flow) => ({ ...flow, quietMs }));
  return plan;
}

/** A call that gets no reply is given up after this time, and relays wait for theirs. */
const GIVEN_UP_MS = 16_000;
const OF_A_SERVER = new Set(['calls', 'cut', 'store pauses']);

/** A crash, a freeze or a fault of the network in the middle of what takes a message from one server to the other. */
function relayFaultOf(random, { lockMs, processes }) {
  const verb = random.pick(['settle', 'settle', 'add', 'outgoing', 'deliver', 'deliver']);
  const process = random.int(processes.length);
  const what = random.pick(['ambush', 'calls']);
  return { what, ...FAULTS[what](random, { lockMs }), process, verb };
}

function drawnOf(seed, random) {
  const lockMs = random.pick([400, 1000, 1000, 2000, 4000]);
  const faultsMs = random.between(2, 5) * lockMs + 1000;
  const processes = NAMES.slice(0, 2 + random.int(3)).map((name) => processOf(name, random.fork(name)));
  // Somebody has to work.
  processes[0].concurrency = Math.max(1, processes[0].concurrency);
  const plan = {
    seed,
    lockMs,
    faultsMs,
    renewMs: random.chance(0.3) ? Math.floor(lockMs / 3) : undefined,
    sweepMs: random.pick([200, 500, 1500]),
    maxStalls: random.pick([0, 1, 1, 3]),
    /** Whether the store hints at who has died, and whether it may be wrong. */
    hints: random.pick(['none', 'none', 'sure', 'fallible']),
    graceMs: random.pick([500, 700, 2000]),
    /** Calls that a worker may have in flight. */
    lanes: random.fork('lanes').pick([1, 1, 1, 2]),
    processes,
    jobs: listOf(2 + random.int(7), (index) => jobOf(index, random.fork(`job ${index}`), { processes, faultsMs, lockMs })),
    names: listOf(random.int(6), (index) => nameOf(index, random.fork(`name ${index}`), { processes, faultsMs, lockMs })),
  };
  const focus = focusOf(random, plan);
  plan.faults = listOf(1 + random.int(7), (index) => faultOf(index, random.fork(`fault ${index}`), plan, focus));
  if (plan.lanes > 1) addBurst(plan, random.fork('burst'));
  addUnique(plan, random.fork('unique'));
  plan.faults.push(...failoverOf(plan.faults.length, random.fork('failover'), plan));
  plan.schedules = schedulesOf(random.fork('schedules'), plan);
  plan.flows = flowsOf(random.fork('flows'), plan);
  addGroups(plan, random.fork('groups'));
  addRate(plan, random.fork('rate'));
  addSteps(plan, random.fork('steps'));
  return plan;
}

/** A second call leaves beside the first only where many short jobs end on one worker at a time: beside all else, or in peace. */
function addBurst(plan, random) {
  const isInPeace = random.chance(0.6);
  if (isInPeace) plan.jobs = [];
  if (isInPeace) plan.faults = [];
  plan.processes.forEach((process, index) => {
    if (index === 0) process.concurrency = 4;
    else if (isInPeace) process.concurrency = 0;
  });
  plan.jobs.push(...burstOf(plan, random));
  plan.faults.push(...burstFaultsOf(plan.faults.length, random, plan));
}

/** In some runs, most jobs have one of two deduplication ids. */
function addUnique({ jobs }, random) {
  if (!random.chance(0.25)) return;
  for (const job of jobs) {
    if (random.chance(0.7)) job.unique = { id: random.pick(['u', 'u', 'v']), keepLastIfActive: random.chance(0.6) };
  }
}

/** In some runs, most jobs belong to one of two groups, of which only one or two jobs may be active. */
function addGroups(plan, random) {
  // A replica may not have got the limits.
  if (!random.chance(0.25) || plan.faults.some(({ what }) => what === 'failover')) return;
  plan.groupConcurrency = random.pick([1, 1, 2]);
  for (const job of plan.jobs) {
    if (job.lockKey === undefined && random.chance(0.8)) job.group = random.pick(['g', 'g', 'h']);
  }
}

/** In some runs, all workers have a rate limit. */
function addRate(plan, random) {
  // A replica may not have got the window.
  if (!random.chance(0.15) || plan.faults.some(({ what }) => what === 'failover')) return;
  plan.limiter = { max: random.pick([1, 2, 3]), duration: Math.ceil(random.between(20, 200)) };
}

function burstOf({ processes, jobs, faultsMs, lockMs }, random) {
  const at = random.between(0.1, 0.8) * faultsMs;
  return listOf(8 + random.int(8), (index) => {
    const job = jobOf(jobs.length + index, random.fork(`job ${index}`), { processes, faultsMs, lockMs });
    const runs = listOf(4, () => [{ kind: 'sleep', ms: random.between(0, 5) }]);
    return { ...job, at, by: 0, delayMs: 0, lockKey: undefined, runs };
  });
}

/** In the middle of it one call takes long and the reply of the next is lost: what the one does is on its way while the other is asked about again. */
function burstFaultsOf(first, random, { jobs }) {
  const at = jobs.at(-1).at + random.between(0, 10);
  return [random.pick(['slow reply', 'slow request']), 'lost reply'].map((kind, nth) => {
    const ms = random.between(60, 300);
    return { index: first + nth, what: 'calls', at, process: 0, kind, verb: 'settle', count: 1, ms, part: 'main' };
  });
}

/** A frozen process wakes up, and a call that hangs is given up and repeated, some time after the last fault. */
const RECOVERY_LOCKS = 6;

/** In some runs: schedules that every process makes anew when it starts, with a few crashes and freezes around their claims. */
function schedulesOf(random, { faults, faultsMs, lockMs, processes }) {
  // What a replica has not got is made again. With long locks, such a run takes long.
  if (lockMs > 1000 || !random.chance(0.06) || faults.some(({ what }) => what === 'failover')) return [];
  for (let left = random.int(4); left > 0; left -= 1) {
    const own = FAULTS.ambush(random, { lockMs });
    const verb = random.pick(['claim', 'claim', 'settle', 'schedule', 'schedule']);
    const at = random.between(10, faultsMs);
    faults.push({ index: faults.length, what: 'ambush', at, process: random.int(processes.length), ...own, verb });
  }
  const quietMs = faultsMs + RECOVERY_LOCKS * lockMs;
  return listOf(1 + random.int(2), (index) => ({
    id: `schedule-${index}`,
    everyMs: Math.floor(random.between(0.3, 1.2) * Math.max(1000, lockMs)),
    overlap: random.chance(0.4) ? 'skip' : 'queue',
    catchUp: random.pick(['one', 'one', 'all']),
    /** From here on a debt is cleared within two seconds. */
    quietMs,
    endMs: quietMs + 4000,
    runs: listOf(4, () => [{ kind: random.pick(['sleep', 'sleep', 'block', 'progress']), ms: random.between(0, 0.6 * lockMs) }]),
  }));
}

const ON_FAILURE = ['failParentOnFailure', 'continueParentOnFailure', 'ignoreDependencyOnFailure', 'removeDependencyOnFailure'];

/** In some runs: trees over two queues, with a few crashes and freezes around the ends of their jobs. */
function flowsOf(random, { faults, faultsMs, lockMs, processes }) {
  // A replica may not have got a flow, or an end of a child.
  if (lockMs > 1000 || !random.chance(0.06) || faults.some(({ what }) => what === 'failover')) return [];
  for (let left = random.int(4); left > 0; left -= 1) {
    const own = FAULTS.ambush(random, { lockMs });
    const at = random.between(10, faultsMs);
    const verb = random.pick(['settle', 'settle', 'claim', 'add']);
    faults.push({ index: faults.length, what: 'ambush', at, process: random.int(processes.length), ...own, verb });
  }
  return treesOf(random, { faultsMs, lockMs, processes });
}

function treesOf(random, { faultsMs, lockMs, processes }) {
  return listOf(1 + random.int(3), (index) => ({
    index,
    by: random.int(processes.length),
    at: random.between(0, 0.7 * faultsMs),
    /** From here on messages are delivered within two seconds. */
    quietMs: faultsMs + RECOVERY_LOCKS * lockMs,
    tree: nodeOf(`flow-${index}`, random, lockMs, 0),
  }));
}

function nodeOf(id, random, lockMs, level) {
  const count = level === 0 ? 1 + random.int(3) : level === 1 && random.chance(0.4) ? 1 + random.int(2) : 0;
  return {
    id,
    queue: random.chance(level === 0 ? 0.2 : 0.7) ? 'children' : 'q',
    attempts: 1 + random.int(2),
    runs: listOf(4, () => [
      { kind: random.pick(['sleep', 'sleep', 'block', 'stop when told']), ms: random.between(0, 0.8 * lockMs) },
      ...(random.chance(0.25) ? [{ kind: 'throw' }] : []),
    ]),
    onFailure: level === 0 ? undefined : random.pick(ON_FAILURE),
    sendsLetter: random.chance(0.6),
    isRemoved: level > 0 && random.fork(`${id} removed`).chance(0.4),
    children: listOf(count, (index) => nodeOf(`${id}-${index}`, random, lockMs, level + 1)),
  };
}

/** In some runs, once: a replica takes over, and the last `ms` of what the store did have not reached it. */
function failoverOf(index, random, { faultsMs, lockMs }) {
  return random.chance(0.12) ? failoverAt(random, { faultsMs, lockMs }).map((fault) => ({ index, ...fault, process: 0 })) : [];
}

function failoverAt(random, { faultsMs, lockMs }) {
  // Where renewals are lost too, sessions end, and all that they held with them; where only a little is lost, they live on with it.
  const ms = random.between(0, random.pick([0.3, 0.3, 1.5])) * lockMs;
  return [{ what: 'failover', at: random.between(0.3, 1) * faultsMs, ms }];
}

function listOf(length, make) {
  return Array.from({ length }, (_, index) => make(index));
}

function processOf(name, random) {
  return {
    name,
    /** 0: it only adds jobs and takes locks. */
    concurrency: random.pick([0, 1, 1, 2, 3]),
    prefetch: random.pick([0, 0, 0, 1, 4]),
    hasThread: random.chance(0.5),
    stands: random.chance(0.5),
    /** Locks have an end of their own, and are not renewed. */
    isTimed: random.chance(0.08),
  };
}

function jobOf(index, random, { processes, faultsMs, lockMs }) {
  return {
    index,
    id: random.chance(0.5) ? `job-${index + 1}` : undefined,
    by: random.int(processes.length),
    at: random.chance(0.4) ? random.between(0, 50) : random.between(0, faultsMs * 0.9),
    attempts: 1 + random.int(3),
    delayMs: random.chance(0.15) ? random.between(10, lockMs) : 0,
    priority: random.chance(0.15) ? 1 + random.int(3) : 0,
    lockKey: random.chance(0.15) ? 'key' : undefined,
    /** What its handler does at its first run, its second run … */
    runs: listOf(4, () => deedsOf(random, lockMs)),
  };
}

function deedsOf(random, lockMs) {
  const deeds = [];
  do deeds.push(deedOf(random, lockMs));
  while (random.chance(0.4) && deeds.length < 4);
  if (random.chance(0.2)) deeds.push({ kind: 'throw' });
  return deeds;
}

function deedOf(random, lockMs) {
  const ms = random.chance(0.3) ? random.between(0, 2.5 * lockMs) : random.between(0, lockMs / 2);
  const kind = random.pick(['sleep', 'sleep', 'sleep', 'block', 'progress', 'data', 'stop when told', 'lock', 'extend']);
  return { kind, ms };
}

function nameOf(index, random, { processes, faultsMs, lockMs }) {
  return {
    index,
    by: random.int(processes.length),
    at: random.between(0, faultsMs * 0.9),
    name: random.pick(['x', 'x', 'y']),
    holdMs: random.between(0, lockMs),
  };
}

const VERBS = ['add', 'add', 'claim', 'settle', 'settle', 'settle', 'openSession', 'renew', 'renew', 'acquire', 'letGo'];
const FAULTS = {
  crash: (random, { lockMs }) => ({ restartMs: random.between(50, 2 * lockMs) }),
  exit: (random, { lockMs }) => ({ restartMs: random.between(50, lockMs), isException: random.chance(0.3) }),
  deploy: (random, { lockMs }) => ({ restartMs: random.between(50, lockMs) }),
  freeze: (random, { lockMs }) => freezeOf(random, lockMs),
  hiccup: (random) => ({ ms: random.between(1, 100) }),
  'clock step': (random, { lockMs }) => ({ ms: random.between(-5, 5) * lockMs }),
  cut: (random, { lockMs }) => ({ mode: random.pick(CUTS), ms: random.between(0.1, 2) * lockMs, part: partOf(random) }),
  calls: (random, { lockMs }) => ({
    kind: random.pick(CALL_FAULTS),
    /** Undefined: any. */
    verb: random.chance(0.5) ? undefined : random.pick(VERBS),
    count: 1 + random.int(3),
    ms: random.between(0.2, 2) * lockMs,
    part: partOf(random),
  }),
  /** Between the work of the store and its reply. */
  ambush: (random, { lockMs }) => ({
    deed: random.pick(['freeze', 'freeze', 'crash']),
    verb: random.pick(['renew', 'renew', 'renew', 'claim', 'settle', 'settle', 'acquire', 'add']),
    ...freezeOf(random, lockMs),
    restartMs: random.between(50, 2 * lockMs),
  }),
  'thread dies': () => ({}),
  'store pauses': (random, { lockMs }) => ({ ms: random.between(0.05, 1.5) * lockMs }),
  revoke: (random, { jobs }) => ({ job: random.int(jobs.length) }),
};
/** How often each is drawn. */
const WEIGHTS = { calls: 7, cut: 3, ambush: 4, crash: 2, freeze: 3, 'clock step': 2 };
const DRAWN = Object.keys(FAULTS).flatMap((what) => Array.from({ length: WEIGHTS[what] ?? 1 }, () => what));

/** As of a laptop that was shut: its connections may be dead when it wakes up, and nobody tells it. */
function freezeOf(random, lockMs) {
  return { ms: random.between(0.1, 2.5) * lockMs, deafMs: random.chance(0.6) ? random.between(0.2, 1.5) * lockMs : 0 };
}

/** Which connections: of the process, of its thread, or both. */
function partOf(random) {
  return random.pick(['main', 'locks', 'both']);
}

/** One fault alone is soon got over: in every other run, most of them strike one process within the time of a lock. */
function focusOf(random, { processes, faultsMs, lockMs }) {
  if (random.chance(0.5)) return { process: 0, from: 10, to: faultsMs, share: 0 };
  const from = random.between(10, faultsMs - lockMs);
  return { process: random.int(processes.length), from, to: from + lockMs, share: 0.8 };
}

function faultOf(index, random, plan, focus) {
  const what = random.pick(DRAWN);
  const own = FAULTS[what](random, plan);
  // Adds are few: a fault that strikes them is aimed at one.
  const job = own.verb === 'add' ? random.pick(plan.jobs) : undefined;
  if (job !== undefined) return { index, what, at: Math.max(0, job.at - 5), process: job.by, ...own };
  const isFocused = random.chance(focus.share);
  const process = isFocused ? focus.process : random.int(plan.processes.length);
  const at = isFocused ? random.between(focus.from, focus.to) : random.between(10, plan.faultsMs);
  return { index, what, at, process, ...own };
}
