// Half-open connections: what is sent goes nowhere, and nobody says so. A worker that lives must notice by itself, say so, and consume
// again, whichever of its connections it was: those for calls and wake-ups, or that of the lock thread.
import { type Connection, type Job, openStore, Queue, Worker } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { SERVER_ENGINES, type ServerEngine, serverOf, twoWays } from '../support/processes/crew.js';
import { sleep, until } from '../support/wait/until.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

interface Role {
  /** Whose way is disturbed. */
  way: 'main' | 'thread';
  disturb(proxy: FaultProxy): void;
  /** It does not get over it before the network is well again. */
  heals: boolean;
  /** A job ends right after it began: its outcome is on its way. */
  busy?: boolean;
}

const ROLES: Record<string, Role> = {
  'calls go nowhere': { way: 'main', disturb: (proxy) => proxy.swallow('both'), heals: true },
  'answers do not come back': { way: 'main', disturb: (proxy) => proxy.swallow('replies'), heals: true },
  'old connections are dead, new ones work': { way: 'main', disturb: (proxy) => proxy.strand(), heals: false },
  'old connections are dead, and a call is under way': {
    way: 'main',
    disturb: (proxy) => proxy.strand(),
    heals: false,
    busy: true,
  },
  'the lock thread is cut off': { way: 'thread', disturb: (proxy) => proxy.swallow('both'), heals: true },
  'the old connection of the lock thread is dead': { way: 'thread', disturb: (proxy) => proxy.strand(), heals: false },
};

/** An idle worker looks every 5 s, and what it asks may take 3 s. */
const UNHEALTHY_WITHIN_MS = 10_000;
const LOCK_MS = 12_000;
/** How long until a worker says that something is wrong, and until it consumes again once it could. */
const TOLD_WITHIN_MS = 12_000;
const CONSUMES_WITHIN_MS = 12_000;

async function disturbed(engine: ServerEngine): Promise<void> {
  const server = await serverOf(engine);
  const scenes = Object.entries(ROLES).map(async ([name, { way, disturb, heals, busy }], index) => {
    const what = `${engine}, ${name}`;
    const proxies = { main: await FaultProxy.start(server), thread: await FaultProxy.start(server) };
    for (const proxy of Object.values(proxies)) onTestFinished(() => proxy.close());
    const queue = new Queue(`half-open-${index}`, { connection: server.url });
    onTestFinished(() => queue.close());
    const connection: Connection = twoWays(proxies.main.url(server.url), proxies.thread.url(server.url));
    const ran: string[] = [];
    const end = newGate();
    const processor = async ({ id, name: kind }: Job): Promise<void> => {
      ran.push(id);
      if (kind === 'held') await end.opened;
    };
    const worker = new Worker(queue.name, processor, { connection, lockRenewTime: 1000 });
    onTestFinished(() => worker.close());
    const errors: Error[] = [];
    let toldAt: number | undefined;
    worker.on('error', (error) => {
      toldAt ??= performance.now();
      errors.push(error);
    });
    const runs = async (patienceMs?: number, kind = 'job'): Promise<void> => {
      const { id } = await queue.add(kind, {});
      await until(`${what}: job ${id} to run`, () => ran.includes(id), patienceMs);
    };
    await runs();
    await until(`${what}: the lock thread to renew`, () => worker.health().lockThread === 'thread');
    if (busy) await runs(undefined, 'held');
    const proxy = proxies[way];
    const begun = performance.now();
    disturb(proxy);
    end.open();
    const since = (): number => Math.round(performance.now() - begun);
    // A worker with a dead lock thread still works.
    if (way === 'thread') await runs();
    // What is over within a few seconds may pass without a word; what lasts may not.
    const lasts = heals && way === 'main';
    if (lasts) await until(`${what}: the worker to be unhealthy`, () => !worker.isHealthy(), UNHEALTHY_WITHIN_MS);
    const unhealthyMs = since();
    if (lasts || way === 'thread') await until(`${what}: the worker to say so`, () => errors.length > 0, TOLD_WITHIN_MS);
    const healedMs = since();
    if (heals) proxy.heal();
    await runs(CONSUMES_WITHIN_MS);
    await until(`${what}: the worker to be healthy again`, () => worker.isHealthy());
    const told = toldAt === undefined ? 'never' : `after ${Math.round(toldAt - begun)} ms`;
    const consumed = `consumed ${since() - healedMs} ms after ${heals ? 'it was well again' : 'the fault'}`;
    console.log(
      `${what}: told ${told}, ${lasts ? `unhealthy after ${unhealthyMs} ms, ` : ''}${consumed}; ${errors.length} errors`,
    );
    for (const error of errors)
      expect(error, what).toMatchObject({ code: expect.stringMatching(/^(STORE_UNAVAILABLE|TIMEOUT|THREAD_FAILED)$/) as string });
    expect(errors.length, errors.map(({ message }) => `${what}: ${message}`).join('\n')).toBeLessThanOrEqual(12);
  });
  await Promise.all(scenes);
}

/** Renewals are rare, and the connection dies without a word right after one: the next must find another in time. */
async function renewedOnDeadConnection(engine: ServerEngine): Promise<void> {
  const server = await serverOf(engine);
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  const store = await openStore(server.url);
  onTestFinished(() => store.close());
  const queue = new Queue('work', { connection: server.url });
  onTestFinished(() => queue.close());
  const end = newGate();
  const processor = async (job: Job): Promise<boolean> => {
    await end.opened;
    return job.lock.held;
  };
  const thread = new URL(proxy.url(server.url));
  // As many connections as a lock thread has.
  if (engine === 'postgres') thread.searchParams.set('max', '2');
  const connection = twoWays(server.url, thread.href);
  const worker = new Worker('work', processor, { connection, lockDuration: LOCK_MS, stalledInterval: 1000 });
  onTestFinished(() => worker.close());
  worker.on('error', () => undefined);
  const { id } = await queue.add('long', {});
  const renewals = async (): Promise<number> => (await store.sessions('work'))[0]?.renewals ?? 0;
  await until(`${engine}: the lock thread to renew`, () => worker.health().lockThread === 'thread');
  // All its connections are there, and at rest.
  await until(`${engine}: the thread to be connected`, () => proxy.open === (engine === 'postgres' ? 2 : 1));
  await sleep(1500);
  proxy.strand();
  const begun = performance.now();
  const before = await renewals();
  const after = async (count: number): Promise<number> => {
    await until(`${engine}: ${count} more renewals`, async () => (await renewals()) >= before + count, 2 * LOCK_MS);
    return Math.round(performance.now() - begun);
  };
  console.log(`${engine}, the connection for renewals dead: renewed after ${await after(1)} ms and ${await after(2)} ms`);
  end.open();
  const done = await until(`${engine}: the job to be done`, async () => {
    const job = await queue.getJob(id);
    return job?.finishedOn === undefined ? undefined : job.toJSON();
  });
  expect(done, engine).toMatchObject({ returnvalue: true, attemptsStarted: 1, stalledCounter: 0 });
}

// All at once: most of it is waiting.
test('a worker reports half-open connections, and consumes again when they recover', { timeout: paced(90_000) }, async () => {
  await Promise.all(SERVER_ENGINES.map(disturbed));
});

test('locks hold when the connection that renews them dies silently', { timeout: paced(60_000) }, async () => {
  await Promise.all(SERVER_ENGINES.map(renewedOnDeadConnection));
});
