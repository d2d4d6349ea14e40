// A processor in a file: each job names what it does.
import { appendFileSync, closeSync, existsSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, threadId } from 'node:worker_threads';
import { DelayedError, RateLimitError, UnrecoverableError, WaitingChildrenError, WaitingError } from 'holdfast';

const never = () => new Promise(() => setInterval(() => undefined, 1000));

/** Blocks the loop until the file is there. */
function blockUntil(file) {
  while (!existsSync(file));
}

/** The descriptor of the channel between a process and its worker. */
const CHANNEL = 3;

export const acts = {
  show: (job, token, signal) => ({
    where: isMainThread ? 'process' : 'thread',
    fields: { ...job },
    more: [job.queueName, job.prefix, job.queueQualifiedName, job.attemptsStarted, job.opts.attempts],
    lock: [job.lock.held, job.lock.token === token, Number.isInteger(job.lock.fence), job.lock.expiresAt > Date.now()],
    signal: [signal.aborted, job.lock.signal === signal],
  }),
  where: () => (isMainThread ? process.pid : threadId),
  echo: (job) => job.data,
  write: async (job) => {
    await job.updateProgress({ done: 40 });
    const rows = [await job.log('one'), await job.log('two')];
    await job.updateData({ ...job.data, more: [1, null] });
    return { rows, progress: job.progress, data: job.data, state: await job.getState(), active: await job.isActive() };
  },
  steps: async (job) => {
    const first = await job.step('first', ({ key, fence, signal }) => {
      appendFileSync(job.data.file, 'first ');
      return { key: key.endsWith(':first'), fence: fence === job.lock.fence, signal: signal === job.lock.signal };
    });
    await job.sleep('nap', 1);
    const signalled = await job.waitFor('go');
    const refused = await job.step('second', ({ commit }) => commit(1, { transaction: {} })).catch(({ code }) => code);
    const repeated = await job.step('first', () => 1).catch(({ code }) => code);
    return { first, signalled, refused, repeated, steps: (await job.steps()).map(({ name }) => name) };
  },
  refused: async (job) => {
    const told = [];
    for (const call of [() => job.updateData(() => 1), () => job.moveToDelayed('soon', job.token), () => job.extendLock(-1)]) {
      await call().catch(({ name, code }) => told.push([name, code]));
    }
    return told;
  },
  extend: async (job) => [await job.extendLock(60_000), job.lock.held, job.lock.expiresAt - Date.now() > 50_000],
  fail: () => {
    const error = new TypeError('no such thing', { cause: new RangeError('deeper') });
    throw Object.assign(error, { code: 'E_NOTHING', status: 404 });
  },
  odd: () => {
    // oxlint-disable-next-line typescript/only-throw-error
    throw 'a text';
  },
  unrecoverable: () => {
    throw new UnrecoverableError('never again');
  },
  discard: (job) => {
    job.discard();
    throw new Error('discarded');
  },
  limited: (job) => {
    if (existsSync(job.data.file)) return 'after the limit';
    appendFileSync(job.data.file, 'limited');
    throw new RateLimitError();
  },
  delay: async (job) => {
    if (job.attemptsStarted > 1) return 'after the delay';
    await job.moveToDelayed(Date.now() + 20, job.token);
    throw new DelayedError();
  },
  wait: async (job) => {
    if (job.attemptsStarted > 1) return 'after the wait';
    await job.moveToWait();
    throw new WaitingError();
  },
  parent: async (job) => {
    if (await job.moveToWaitingChildren(job.token)) throw new WaitingChildrenError();
    const values = await job.getChildrenValues();
    const counts = await job.getDependenciesCount();
    const { processed } = await job.getDependencies();
    return [Object.values(values), counts, Object.values(processed), await job.getIgnoredChildrenFailures()];
  },
  child: (job) => [job.parent?.id, job.parentKey?.endsWith(job.parent?.id ?? '?')],
  bad: () => ({ result: new Map() }),
  late: async (job) => {
    setTimeout(() => job.log('too late').catch(({ code }) => appendFileSync(job.data.file, code)), 20);
    return 'done';
  },
  polite: async (job, _token, signal) => {
    appendFileSync(job.data.file, 'began');
    await sleep(3_600_000, undefined, { signal }).catch(() => undefined);
    const { name, code, message } = signal.reason;
    appendFileSync(job.data.file, `\n${JSON.stringify([signal.reason instanceof Error, name, code, message, job.lock.held])}\n`);
    throw new Error('stopped');
  },
  babble: async () => {
    const send = isMainThread
      ? (message) => writeSync(CHANNEL, `${JSON.stringify(message)}\n`)
      : (message) => parentPort.postMessage(message);
    for (const message of [
      null,
      7,
      'done',
      [],
      {},
      { kind: 'done' },
      { kind: 'call' },
      { kind: 'failed', run: 1 },
      { kind: 'uncaught' },
    ])
      send(message);
    await sleep(50);
    return 'ok';
  },
  bytes: async (job) => {
    if (isMainThread) writeSync(CHANNEL, Buffer.from(job.data.bytes, 'latin1'));
    else parentPort.postMessage(job.data.bytes);
    if (job.data.call) await job.log('after foreign bytes');
    if (job.data.stay) await never();
    return 'ended';
  },
  cut: async (job) => {
    if (isMainThread) closeSync(CHANNEL);
    else parentPort.close();
    if (job.data?.file) appendFileSync(job.data.file, 'began');
    await never();
  },
  send: () => process.send({ cmd: 'NODE_HANDLE_ACK' }),
  untilAborted: async (job, _token, signal) => {
    appendFileSync(job.data.file, 'began');
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    throw new Error(signal.reason.code);
  },
  held: (job) => {
    appendFileSync(job.data.file, 'began');
    const before = job.lock.held;
    while (job.lock.held);
    return before;
  },
  watch: async (job) => {
    appendFileSync(job.data.file, `${JSON.stringify([process.pid])}\n`);
    const began = performance.now();
    let told = false;
    while (job.lock.held) {
      await sleep(5);
      if (!told && performance.now() - began > job.lock.expiresAt - Date.now() + 1500) {
        told = true;
        appendFileSync(job.data.file, 'old\n');
      }
    }
    appendFileSync(job.data.file, 'lost\n');
    await never();
  },
  // For the sandbox's own trials.
  loop: (job) => {
    if (job.data?.file) appendFileSync(job.data.file, 'began');
    for (;;);
  },
  oom: () => {
    const all = [];
    for (;;) all.push(Array.from({ length: 100_000 }, () => Math.random()));
  },
  exit: () => {
    process.stderr.write('cannot go on\n');
    process.exit(7);
  },
  abort: () => process.abort(),
  deaf: (job) => {
    if (job.data?.file) appendFileSync(job.data.file, 'began');
    process.on('SIGTERM', () => undefined);
    return never();
  },
  'late error': () => {
    setTimeout(() => {
      throw new Error('thrown late');
    });
    return 'done';
  },
  uncaught: () => {
    setTimeout(() => {
      throw new Error('thrown in a timer');
    });
    return never();
  },
  pid: (job) => {
    appendFileSync(job.data.file, `${process.pid}\n`);
    for (;;);
  },
  blocked: (job) => {
    appendFileSync(job.data.file, 'began');
    blockUntil(job.data.until);
    return job.lock.held;
  },
  slow: async (job) => {
    appendFileSync(job.data.file, 'began');
    while (!existsSync(job.data.until)) await sleep(5);
    return process.pid;
  },
};

export default function act(job, token, signal) {
  return acts[job.name](job, token, signal);
}
