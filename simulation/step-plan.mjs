// In some runs: jobs that make steps, sleep and wait for signals, runs with time limits, and processes that send signals, cancel jobs
// and retry them by hand.

/** Three of four runs have neither. */
const SHARE = 0.25;
const VERBS = ['write', 'write', 'settle', 'settle', 'change', 'checkSessions', 'renew', 'claim'];
const CALL_KINDS = ['lost request', 'lost reply', 'lost reply', 'silent reply', 'slow request', 'slow reply', 'doubled request'];

export function addSteps(plan, random) {
  plan.commands = [];
  if (!random.chance(SHARE)) return;
  plan.timeoutGraceMs = Math.ceil(random.pick([50, 300, 1000]));
  // What must happen within a time is judged where nothing goes wrong.
  plan.isInPeace = plan.lockMs > 2000 || random.chance(0.4);
  if (plan.isInPeace) plan.faults = [];
  const first = plan.jobs.length;
  const count = 1 + random.int(3);
  for (let index = first; index < first + count; index += 1) plan.jobs.push(durableOf(index, random.fork(`job ${index}`), plan));
  for (const job of plan.jobs) if (random.chance(job.isDurable ? 0.3 : 0.2)) limit(job, random, plan);
  if (plan.isInPeace) lengthen(plan, random.fork('peace'));
  const commands = commandsOf(random, plan);
  plan.commands = commands.map((command, index) => ({ index, ...command }));
  if (!plan.isInPeace) addFaults(plan, random.fork('faults'));
}

/** The same plan for a store that has no steps yet. */
export function withoutSteps({ timeoutGraceMs: _grace, isInPeace: _peace, ...plan }) {
  const jobs = plan.jobs.filter(({ isDurable }) => isDurable !== true).map(({ timeoutMs: _limit, ...job }) => job);
  const isKept = ({ what, deed }) => what !== 'cancel' && deed !== 'cancel';
  return { ...plan, jobs, commands: [], faults: plan.faults.filter(isKept) };
}

/** A job whose runs all have the same steps, with something else in between. */
function durableOf(index, random, { processes, faultsMs, lockMs }) {
  const script = Array.from({ length: 1 + random.int(4) }, (_, nth) => stepOf(nth, random, lockMs));
  const runs = Array.from({ length: 4 }, () => script.flatMap((deed) => [deed, ...betweenOf(random, lockMs)]));
  return {
    index,
    isDurable: true,
    id: `durable-${index}`,
    by: random.int(processes.length),
    at: random.between(0, faultsMs * 0.7),
    attempts: 1 + random.int(4),
    delayMs: 0,
    priority: 0,
    /** Its handlers catch errors of their steps, and go on. */
    runs: random.chance(0.3) ? runs.map((run) => run.map((deed) => ({ ...deed, isStubborn: true }))) : runs,
  };
}

function stepOf(nth, random, lockMs) {
  const kind = random.pick(['step', 'step', 'step', 'nap', 'await']);
  const ms = random.chance(0.3) ? random.between(0, 1.5 * lockMs) : random.between(0, lockMs / 4);
  return { kind, name: `${kind}-${nth}`, ms, blocks: kind === 'step' && random.chance(0.2) };
}

function betweenOf(random, lockMs) {
  if (random.chance(0.5)) return [];
  const kind = random.pick(['sleep', 'sleep', 'block', 'progress', 'stop when told', 'throw']);
  return [{ kind, ms: random.between(0, lockMs) }];
}

/** Some handlers keep the limit, some ignore it, and some block their loop for longer than it, the grace and the lock thread take. */
function limit(job, random, { lockMs, timeoutGraceMs }) {
  job.timeoutMs = Math.ceil(random.between(0.1, 1) * lockMs);
  const overdueMs = job.timeoutMs + timeoutGraceMs + random.between(-200, 2500);
  const kind = random.pick(['none', 'stop when told', 'sleep', 'sleep', 'block', 'block']);
  if (kind !== 'none') job.runs = job.runs.map((run, nth) => (nth === 1 ? run : [...run, { kind, ms: Math.max(1, overdueMs) }]));
}

/** Where a cancel must be heard in time, some handlers run for long, and some jobs are cancelled at the moment of their grant. */
function lengthen({ jobs, faults, processes }, random) {
  for (const job of jobs.filter(({ isDurable }) => isDurable)) {
    if (random.chance(0.6)) job.runs = job.runs.map((run) => [{ kind: 'sleep', ms: random.between(1500, 4000) }, ...run]);
    if (!random.chance(0.4)) continue;
    const fault = { what: 'ambush', deed: 'cancel', verb: 'claim', job: job.id, at: job.at, lateMs: random.between(600, 1500) };
    faults.push({ index: faults.length, ...fault, process: random.int(processes.length) });
  }
}

function commandsOf(random, { jobs, faultsMs, processes, flows, isInPeace }) {
  const durable = jobs.filter(({ isDurable }) => isDurable);
  const others = jobs.filter(({ id, isDurable }) => id !== undefined && !isDurable).map(({ id }) => id);
  const nodes = flows
    .flatMap(({ tree }) => [tree, ...tree.children])
    .filter(({ queue }) => queue === 'q')
    .map(({ id }) => id);
  const when = (from = 0) => ({
    by: random.int(processes.length),
    at: from + random.between(0, random.pick([0.1, 0.5, 1]) * faultsMs),
  });
  const awaited = ({ runs: [run] }) => run.filter(({ kind }) => kind === 'await');
  const signals = durable.flatMap((job) =>
    awaited(job).flatMap(({ name }) => (random.chance(0.8) ? [{ kind: 'signal', job: job.id, name, ...when(job.at) }] : [])),
  );
  // Two with different data: the first counts.
  const doubled = signals.filter(() => random.chance(0.3)).map((signal) => ({ ...signal, ...when() }));
  const cancels = [...durable.map(({ id }) => id), ...others, ...nodes]
    .filter(() => random.chance(isInPeace ? 0.4 : 0.25))
    .map((job) => ({ kind: 'cancel', job, ...when(jobs.find(({ id }) => id === job)?.at), children: random.chance(0.5) }));
  const all = random.chance(0.06) ? [{ kind: 'cancel all', ...when() }] : [];
  const retries = durable
    .filter(() => random.chance(0.3))
    .map(({ id, runs, at }) => {
      const steps = runs[0].filter(({ kind }) => kind === 'step');
      return {
        kind: 'retry',
        job: id,
        ...when(at + 0.3 * faultsMs),
        name: random.chance(0.5) ? random.pick(steps)?.name : undefined,
      };
    });
  return [...signals, ...doubled, ...cancels, ...all, ...retries];
}

/** Crashes, freezes and faults of the network around steps, and cancels at the moment of a grant. */
function addFaults(plan, random) {
  const { faultsMs, lockMs, processes, faults, jobs } = plan;
  const push = (fault) => faults.push({ index: faults.length, at: random.between(10, faultsMs), ...fault });
  for (let left = random.int(4); left > 0; left -= 1) {
    const process = random.int(processes.length);
    const verb = random.pick(VERBS);
    const ms = random.between(0.1, 2) * lockMs;
    if (random.chance(0.5)) {
      push({
        what: 'ambush',
        deed: random.pick(['freeze', 'crash']),
        verb,
        process,
        ms,
        deafMs: 0,
        restartMs: random.between(50, lockMs),
      });
    } else push({ what: 'calls', kind: random.pick(CALL_KINDS), verb, process, count: 1 + random.int(2), ms, part: 'both' });
  }
  for (let left = random.int(3); left > 0; left -= 1) {
    const job = random.pick(jobs.filter(({ isDurable }) => isDurable)).id;
    push({
      what: 'ambush',
      deed: 'cancel',
      verb: random.pick(['claim', 'settle', 'write']),
      process: random.int(processes.length),
      job,
    });
  }
}
