// S4-15 with real processes: producers, workers and lock threads, each behind a proxy of its own that cuts their connections at random
// places, a thousand times (300 in the gate). HOLDFAST_CUTS says how many, HOLDFAST_SEED repeats the choice of places (the moments are the machine's).
import { openStore, type Store } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Crew, SERVER_ENGINES, serverOf, twoWays } from '../support/processes/crew.js';
import { type Cuts, cutAtRandom } from '../support/faults/cuts.js';
import { seeded } from '../support/run/random.js';
import { paced } from '../support/wait/pace.js';
import { FULL } from '../support/run/matrix.js';
import { seedOfTest } from '../support/run/seed.js';
import { FaultProxy } from '../support/servers/proxy.js';
import type { TestServer } from '../support/servers/server.js';

const CUTS = Number(process.env['HOLDFAST_CUTS'] ?? (FULL ? 1000 : 300));
type Claimed = Awaited<ReturnType<Store['claim']>>['jobs'];
// Locks that outlast the test: what is orphaned is not hidden by their end. Renewed all the time, so that the thread has something to lose.
// Nobody is taken for dead because his connection is cut so often that for seconds no renewal gets through.
const OPTIONS = { concurrency: 8, lockDuration: 120_000, lockRenewTime: 50, stalledInterval: 500, crashGraceMs: 120_000 };

async function newProxy(server: TestServer): Promise<FaultProxy> {
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  return proxy;
}

describe.each(SERVER_ENGINES)('cut connections on %s', (engine) => {
  test(`S4-15 ${CUTS} cuts: nothing acknowledged is lost, nothing is added, run or finished twice, nothing is orphaned`, {
    timeout: paced(60_000 + CUTS * 200),
  }, async () => {
    const seed = seedOfTest();
    const server = await serverOf(engine);
    const crew = await Crew.on(server.url);
    const proxies: Record<string, FaultProxy> = {};
    const way = async (name: string): Promise<string> => {
      const proxy = await newProxy(server);
      proxies[name] = proxy;
      return proxy.url(server.url);
    };
    for (const number of [1, 2]) {
      const connection = twoWays(await way(`worker ${number}`), await way(`lock thread ${number}`));
      crew.worker({ connection, options: OPTIONS });
      crew.producer({ connection: await way(`producer ${number}`), paceMs: 10 });
    }
    await Promise.all(crew.members.map((member) => member.ready()));
    const start = performance.now();
    const all = Object.values(proxies);
    const total = (): number => all.reduce((sum, { counts }) => sum + counts.cut + counts.dropped, 0);
    const random = seeded(seed);
    const cuts = await Promise.all(all.map((proxy) => cutAtRandom(proxy, seeded(random() * 2 ** 31), () => total() >= CUTS)));
    const tookMs = performance.now() - start;
    const ledger = await crew.finish();
    const sum = (kind: keyof Cuts): number => cuts.reduce((count, each) => count + each[kind], 0);
    const share = Object.entries(proxies).map(([name, { counts }]) => `${name}: ${counts.cut + counts.dropped}`);
    console.log(
      `cuts on ${engine}: ${total()} in ${Math.round(tookMs / 1000)} s, seed ${seed} (${sum('request')} in a request, ${sum('lost reply')} before a reply, ` +
        `${sum('reply')} in a reply, ${sum('now')} at any moment; ${share.join(', ')}); ${ledger.acknowledged} jobs acknowledged, ${ledger.starts} runs`,
    );
    expect(ledger.complaints).toEqual([]);
    // Every job ran once: no lock was lost, and no job had to be recovered.
    expect(crew.count('stalled')).toBe(0);
    expect(crew.count('aborted')).toBe(0);
    expect(crew.members.flatMap((member) => member.notes('refused'))).toEqual([]);
    // The test must have had something to lose, everywhere.
    for (const each of all) expect(each.counts.cut + each.counts.dropped).toBeGreaterThan(CUTS / 50);
    expect(ledger.acknowledged).toBeGreaterThan(CUTS / 20);
  });

  test('S4-15 (N) callers that give a repeated call another number: the job that was added twice and the one without an owner are found', async () => {
    const server = await serverOf(engine);
    const crew = await Crew.on(server.url);
    const proxy = await newProxy(server);
    const careless = await openStore(proxy.url(server.url));
    onTestFinished(() => careless.close());
    let seq = 0;
    /** `mark` tells its request from what the store says by itself. */
    const twice = async <T>(mark: string, call: (seq: number) => Promise<T>): Promise<T> => {
      proxy.dropReplies({ when: (request) => request.includes(mark) });
      await expect(call(++seq)).rejects.toMatchObject({ retryable: true });
      return call(++seq);
    };
    const add = async (key: string, again: boolean): Promise<void> => {
      const job = { name: 'job', data: JSON.stringify({ key }), opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
      const call = (number: number) => careless.add('work', [job], { caller: 'p', seq: number });
      crew.note('adding', { keys: [key] });
      const [reply] = await (again ? twice(key, call) : call(++seq));
      crew.note('added', { jobs: [{ id: reply?.id, key }] });
    };
    const claim = (number: number) => careless.claim('work', { session: 'careless', seq: number, count: 1 });
    const run = async ([job]: Claimed): Promise<void> => {
      const { id, token, fence, data } = job ?? expect.fail('nothing was claimed');
      const value = JSON.stringify({ ...(JSON.parse(data) as object), fence });
      crew.note('start', { id, fence });
      crew.note('end', { id, fence });
      await careless.settle('work', [{ kind: 'completed', jobId: id, token, value, keep: {} }]);
    };
    await careless.openSession({
      queue: 'work',
      id: 'careless',
      owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
      durationMs: 60_000,
      maxStalls: 1,
      slots: 1,
    });
    // The server knows all scripts after this: a call that it could not carry out at first would be harmless.
    await add('first', false);
    await run((await claim(++seq)).jobs);
    await add('doubled', true);
    await run((await claim(++seq)).jobs);
    await run((await claim(++seq)).jobs);
    await add('orphan', false);
    expect((await twice('careless', claim)).jobs).toEqual([]);
    const { complaints } = await crew.finish(500);
    expect(complaints).toContain('doubled was added twice');
    expect(complaints).toContain('1 jobs are left active');
    expect(complaints.some((complaint) => complaint.endsWith('(orphan) was acknowledged and never completed'))).toBe(true);
  });
});
