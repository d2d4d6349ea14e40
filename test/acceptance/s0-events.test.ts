// S0-3, S0-10, S0-15: what a worker and its lock thread tell, with the thread on and off.
import { describe, expect, test } from 'vitest';
import { listenTo, messageOf, type Moment } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, SHARED_ENGINES, newScene, orphan, renewed, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const withAndWithout = <E>(engines: E[]): [engine: E, thread: boolean][] =>
  engines.flatMap((engine): [E, boolean][] => [
    [engine, true],
    [engine, false],
  ]);
const options = { lockDuration: paced(1000), lockRenewTime: paced(150), stalledInterval: 100 };

const idsOf = (moment: Moment): unknown => (moment['args'] as unknown[])[0];
const isLoss = (moment: Moment): boolean => messageOf(moment).includes('could not renew lock');

describe.each(withAndWithout(ENGINES))('lock events on %s with useDedicatedLockThread %s', (engine, useDedicatedLockThread) => {
  test('S0-3 a stolen lock emits one error with the job id, aborts the signal, and refuses the finish', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const signals: AbortSignal[] = [];
    const processor = async (_job: unknown, _token: string, signal: AbortSignal) => {
      signals.push(signal);
      if (signals.length === 1) await gate.opened;
      return signals.length;
    };
    const { log } = work(scene, processor, { ...options, useDedicatedLockThread });
    const { id } = await scene.queue.add('victim', {});
    await log.moment('active');
    const session = (await scene.store.locks('work', { jobIds: [id] }))[0]?.session;
    expect(await scene.store.change('work', [id], { kind: 'revoke', reason: 'stolen by the test' })).toMatchObject({
      changed: [id],
    });

    const error = await log.moment('error', isLoss);
    expect(messageOf(error)).toContain(id);
    expect(messageOf(error)).toContain('stolen by the test');
    expect(signals[0]?.aborted).toBe(true);
    expect(String(signals[0]?.reason)).toContain('lock lost');

    const renewals = async () => (await scene.store.sessions('work')).find((info) => info.id === session)?.renewals ?? 0;
    const before = await renewals();
    await until('three more renewals', async () => (await renewals()) >= before + 3);
    expect(log.all('error', isLoss)).toHaveLength(1);
    expect(log.all('lockRenewalFailed').map(idsOf)).toEqual([[id]]);

    gate.open();
    await log.moment('error', (moment) => messageOf(moment).includes('Could not settle'));
    await log.moment('completed');
    expect((await scene.queue.getJob(id))?.returnvalue, 'the second run, which owned the lock').toBe(2);
    expect(log.all('completed')).toHaveLength(1);
  });

  test('S0-3 a session that the store has ended emits one error for each of its locks', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { log } = work(scene, () => gate.opened, { ...options, useDedicatedLockThread, concurrency: 3 });
    const jobs = await scene.queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
    await until('all three run', async () => log.all('active').length === 3);
    const ids = jobs.map(({ id }) => id);
    const session = (await scene.store.locks('work', { jobIds: [ids[0] as string] }))[0]?.session as string;
    await scene.queue.pause();
    await scene.store.closeSessions([{ queue: 'work', id: session }], 'closed');
    await log.moment('lockRenewalFailed');
    expect(
      log
        .all('lockRenewalFailed')
        .flatMap((moment) => idsOf(moment) as string[])
        .sort(),
    ).toEqual(ids);
    const losses = log.all('error', isLoss).map(messageOf);
    expect(losses).toHaveLength(3);
    for (const id of ids) expect(losses.filter((text) => text.includes(`job ${id}:`))).toHaveLength(1);
  });

  test('S0-10 the worker and its lock thread emit what was renewed, lost and stalled', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { worker, log } = work(scene, (job) => (job.name === 'orphan' ? undefined : gate.opened), {
      ...options,
      useDedicatedLockThread,
      concurrency: 2,
    });
    const monitor = worker.lockManagerThread;
    expect(monitor === undefined).toBe(!useDedicatedLockThread);
    const watched = monitor === undefined ? undefined : listenTo(monitor, ['lockExtended', 'lockRenewalFailed', 'stalledJobs']);
    const kept = await scene.queue.add('kept', {});
    const stolen = await scene.queue.add('stolen', {});
    await until('both run', async () => log.all('active').length === 2);

    const both = await log.moment('locksRenewed', (moment) => (idsOf(moment) as { count: number }).count === 2);
    expect(idsOf(both)).toEqual({ count: 2, jobIds: [kept.id, stolen.id] });
    if (watched !== undefined)
      await watched.moment('lockExtended', (moment) => String(idsOf(moment)) === `${kept.id},${stolen.id}`);

    await scene.queue.pause();
    await scene.store.change('work', [stolen.id], { kind: 'revoke', reason: 'stolen by the test' });
    await log.moment('lockRenewalFailed');
    const told = log.all('locksRenewed').length;
    await renewed(scene.store, kept.id, 3);
    await until('two more reports', async () => log.all('locksRenewed').length >= told + 2);
    for (const later of log.all('locksRenewed').slice(told)) expect(idsOf(later)).toEqual({ count: 1, jobIds: [kept.id] });
    expect(log.all('lockRenewalFailed').map(idsOf)).toEqual([[stolen.id]]);
    await scene.queue.remove(stolen.id);
    await scene.queue.resume();

    const dead = await orphan(scene, 50);
    const stalled = await log.moment('stalled');
    expect(stalled['args']).toEqual([dead, 'active']);
    gate.open();
    await log.moment('completed', ({ args }) => (args as { id: string }[])[0]?.id === dead);
    if (watched !== undefined) {
      expect(watched.all('lockRenewalFailed').map(idsOf)).toEqual([[stolen.id]]);
      expect(watched.all('stalledJobs').map(idsOf)).toEqual([[dead]]);
    }
  });
});

test.each(withAndWithout(SHARED_ENGINES))(
  'S0-3 %s with useDedicatedLockThread %s: another worker emits stalled(jobId, active) after a worker was killed',
  async (engine, thread) => {
    const scene = await newScene(engine);
    const shared = { ...options, useDedicatedLockThread: thread };
    const victim = new WorkerProcess({ queue: 'work', connection: scene.connection, options: shared });
    const { id } = await scene.queue.add('hold', {});
    await victim.moment('started');
    const { log } = work(scene, async () => 'recovered', shared);
    await log.moment('ready');
    victim.kill('SIGKILL');
    const stalled = await log.moment('stalled');
    expect(stalled['args']).toEqual([id, 'active']);
    await log.moment('completed');
    expect(log.all('stalled')).toHaveLength(1);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'recovered', stalledCounter: 1 });
  },
);

describe.each(ENGINES)('S0-15 migration on %s', (engine) => {
  async function run(useDedicatedLockThread: boolean): Promise<string[]> {
    const { url } = await newScene(engine);
    const plan = { queue: 'work', connection: url, options: { useDedicatedLockThread } };
    const program = new WorkerProcess(plan, 'migration.mjs');
    const { lines } = await program.moment('event log');
    expect(await program.exited).toEqual({ code: 0, signal: null });
    return lines as string[];
  }

  test('S0-15 the same program with and without the flag prints the same event log', async () => {
    const without = await run(false);
    const withThread = await run(true);
    expect(withThread).toEqual(without);
    for (const event of [
      'active',
      'completed',
      'failed',
      'progress',
      'stalled',
      'error',
      'locksRenewed',
      'lockRenewalFailed',
      'drained',
      'closed',
    ]) {
      expect(
        without.some((line) => line.startsWith(event)),
        `the log has a ${event}`,
      ).toBe(true);
    }
  });
});
