// The connections of a process that lives are reset, and it cannot come back for some seconds. A server cannot tell that from a crash:
// how long it waits is `crashGraceMs`. By then whoever is cut off must no longer call its lock held.
import { type Job, Queue, Worker } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { SERVER_ENGINES, type ServerEngine, serverOf, twoWays } from '../support/processes/crew.js';
import { sleep, until } from '../support/wait/until.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

const LOCK_MS = 30_000;
/** How often a handler looks at its lock. */
const LOOK_MS = 5;
const GRACE_MS = 1_000;
/** Too short to be asked for within it (docs/locks.md). */
const UNHEARD_MS = 400;
/** Enough for a hint, the grace and a sweep. */
const PARTITION_MS = 5_000;

interface Partition {
  id: string;
  /** Moments of this process' clock: when the first handler saw that its lock is not held, and when its signal was aborted. */
  seen: { unheldAt?: number; abortedAt?: number; secondAt?: number };
  /** Who finished the job, and how often it was begun. */
  ends(): Promise<{ returnvalue: unknown; attemptsStarted: number }>;
  secondRuns: string[];
  errors: Error[];
  /** The network is well again, and the first handler ends. */
  heal(): void;
}

/** `mute`: the first worker's connections end for the server alone, and it hears nothing. */
async function partition(engine: ServerEngine, crashGraceMs: number, mute = false): Promise<Partition> {
  const server = await serverOf(engine);
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  const queue = new Queue('work', { connection: server.url });
  onTestFinished(() => queue.close());
  const end = newGate();
  const secondRuns: string[] = [];
  const errors: Error[] = [];
  const options = { lockDuration: LOCK_MS, stalledInterval: 300, crashGraceMs };
  const through = proxy.url(server.url);
  const seen: Partition['seen'] = {};
  const handler = async ({ lock }: Job): Promise<string> => {
    const watch = setInterval(() => {
      if (!lock.held) seen.unheldAt ??= performance.now();
    }, LOOK_MS);
    lock.signal.addEventListener('abort', () => (seen.abortedAt = performance.now()));
    await end.opened;
    clearInterval(watch);
    return 'first';
  };
  const first = new Worker('work', handler, { connection: twoWays(through, through), ...options });
  onTestFinished(() => first.close());
  first.on('error', (error) => errors.push(error));
  const started = new Promise((resolve) => first.once('active', resolve));
  const { id } = await queue.add('long', {});
  await started;
  await until(`${engine}: the lock thread to renew`, () => first.health().lockThread === 'thread');
  const processor = async (job: Job): Promise<string> => {
    seen.secondAt ??= performance.now();
    secondRuns.push(job.id);
    return 'second';
  };
  const second = new Worker('work', processor, { connection: twoWays(server.url, server.url), ...options });
  onTestFinished(() => second.close());
  await second.waitUntilReady();
  proxy.swallow('both');
  if (mute) proxy.abandon();
  else proxy.cut('reset');
  const heal = (): void => {
    proxy.heal();
    end.open();
  };
  onTestFinished(heal);
  const ends = (): Promise<{ returnvalue: unknown; attemptsStarted: number }> =>
    until(
      `${engine}: the job to be done`,
      async () => {
        const job = await queue.getJob(id);
        if (job?.finishedOn === undefined) return undefined;
        return { returnvalue: job.returnvalue as unknown, attemptsStarted: job.attemptsStarted };
      },
      20_000,
    );
  return { id, seen, ends, secondRuns, errors, heal };
}

test('a worker that is cut off keeps its job with a crashGraceMs as long as the locks', { timeout: paced(60_000) }, async () => {
  const all = await Promise.all(SERVER_ENGINES.map((engine) => partition(engine, LOCK_MS)));
  await sleep(PARTITION_MS);
  for (const { heal, ends, secondRuns } of all) {
    heal();
    expect(await ends()).toEqual({ returnvalue: 'first', attemptsStarted: 1 });
    expect(secondRuns).toEqual([]);
  }
});

test('(N) a worker that is cut off with a short crashGraceMs loses its job, and its late result is refused', {
  timeout: paced(60_000),
}, async () => {
  const all = await Promise.all(SERVER_ENGINES.map((engine) => partition(engine, GRACE_MS)));
  for (const { id, heal, ends, secondRuns, errors } of all) {
    expect(await ends()).toEqual({ returnvalue: 'second', attemptsStarted: 2 });
    expect(secondRuns).toEqual([id]);
    heal();
    const refused = ({ message }: Error): boolean => message.includes(`Could not settle job ${id} as completed`);
    await until('the late result to be refused', () => errors.some(refused));
    expect(await ends()).toMatchObject({ returnvalue: 'second' });
  }
});

test.each([
  ['are reset', false],
  ['end without a word', true],
])(
  'rule 3: when its connections %s, its lock is not held before the job runs elsewhere, and nothing is aborted',
  {
    timeout: paced(60_000),
  },
  async (_way, mute) => {
    const all = await Promise.all(SERVER_ENGINES.map((engine) => partition(engine, GRACE_MS, mute)));
    for (const { heal, ends, seen } of all) {
      expect(await ends()).toEqual({ returnvalue: 'second', attemptsStarted: 2 });
      expect(seen.unheldAt).toBeLessThan(seen.secondAt ?? 0);
      expect(seen.abortedAt).toBeUndefined();
      heal();
    }
  },
);

test('(N) held is still true when the job runs elsewhere, with a crashGraceMs too short for a suspicion check', {
  timeout: paced(60_000),
}, async () => {
  const all = await Promise.all(SERVER_ENGINES.map((engine) => partition(engine, UNHEARD_MS, true)));
  for (const { heal, ends, seen } of all) {
    expect(await ends()).toEqual({ returnvalue: 'second', attemptsStarted: 2 });
    expect(seen.unheldAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(seen.secondAt ?? 0);
    heal();
  }
});
