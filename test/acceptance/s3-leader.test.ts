// S3-5: of several instances one leads; whoever stops being heard of is followed, and knows it before it does anything.
import { Leader, openStore } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { FaultySides, type Side } from '../support/faults/faulty-thread.js';
import { freeze } from '../support/processes/freeze.js';
import { monotonicNow } from '../support/wait/moments.js';
import { type ProcessPlan, WorkerProcess } from '../support/processes/worker-process.js';
import { LOCK_ENGINES, newScene, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const ELECTION = { leaderTimeout: paced(1500), heartbeatInterval: paced(300) };

const CALM = { leaderTimeout: paced(3000), heartbeatInterval: paced(1000), stalledInterval: 30_000 };
const TRAFFIC = ['acquire', 'renew', 'letGo', 'probe', 'sweep', 'sessions', 'checkSessions'] as const;

function stand({ url: connection }: Scene, options: object = {}): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection, options: { ...ELECTION, ...options } } as ProcessPlan, 'leader.mjs');
}

async function twoInstances(scene: Scene, options: object = {}): Promise<[leader: WorkerProcess, follower: WorkerProcess]> {
  const leader = stand(scene, options);
  await leader.moment('leader');
  const follower = stand(scene, options);
  await follower.moment('follower');
  return [leader, follower];
}

const termOf = (each: WorkerProcess): number => (each.all('leader').at(-1) as unknown as { args: [number] }).args[0];

describe.each(oneInThisRun(LOCK_ENGINES))('S3 leader on %s', (engine) => {
  test('S3-5 when the leader is killed, the other instance leads within leaderTimeout plus one beat', async () => {
    const scene = await newScene(engine);
    const [first, second] = await twoInstances(scene);
    expect(await scene.queue.getInstances()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ pid: first.pid, leader: true }),
        expect.objectContaining({ pid: second.pid, leader: false }),
      ]),
    );
    expect(second.all('leader')).toEqual([]);
    const took = stopwatch();
    first.kill('SIGKILL');
    await second.moment('leader');
    expect(took()).toBeLessThan(ELECTION.leaderTimeout + ELECTION.heartbeatInterval);
    expect(termOf(second)).toBeGreaterThan(termOf(first));
  });

  test('S3-5 a leader that was frozen past the timeout emits follower before it does any work', async () => {
    const scene = await newScene(engine);
    const [first, second] = await twoInstances(scene);
    await first.moment('work');
    await freeze(first, scene);
    await second.moment('leader');
    const thawedAt = monotonicNow();
    first.thaw();
    const follower = await first.moment('follower');
    expect(follower.at).toBeGreaterThan(thawedAt);
    first.send('isLeader');
    expect(await first.moment('isLeader')).toMatchObject({ result: false });
    expect(first.all('work', ({ at }) => at > thawedAt)).toEqual([]);
    expect(termOf(second)).toBeGreaterThan(termOf(first));
    // It stands again, and leads again when it is its turn.
    second.kill('SIGTERM');
    await until('the first to lead again', async () => first.all('leader').length === 2);
    expect(termOf(first)).toBeGreaterThan(termOf(second));
  });

  test('S3-5 a leader that is closed hands over at once', async () => {
    const scene = await newScene(engine);
    const [first, second] = await twoInstances(scene, { leaderTimeout: 60_000, heartbeatInterval: 10_000 });
    const took = stopwatch();
    first.kill('SIGTERM');
    await second.moment('leader');
    expect(took()).toBeLessThan(paced(2000));
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(first.moments.map(({ event }) => event).filter((event) => event === 'follower' || event === 'closed')).toEqual([
      'follower',
      'closed',
    ]);
  });

  test('S3-5 ids may hold ":", equal ids are reported, and still only one leads', async () => {
    const scene = await newScene(engine);
    const [first, second] = await twoInstances(scene, { instanceId: 'eu:west:1' });
    for (const each of [first, second]) {
      await each.moment('error', ({ args }) => (args as [{ code?: string }])[0].code === 'INSTANCE_TAKEN');
    }
    expect(first.all('follower')).toEqual([]);
    expect(second.all('leader')).toEqual([]);
    expect((await scene.queue.getInstances()).map(({ id, leader }) => [id, leader])).toEqual([
      ['eu:west:1', true],
      ['eu:west:1', false],
    ]);
  });

  test('S3-5 store traffic stays bounded with 20 instances whose locks the thread renews, also on a busy queue', async () => {
    const scene = await newScene(engine);
    const sides = new FaultySides(scene);
    // One for all of them, as a URL would be.
    const connection = await openStore(sides.connection);
    const all = Array.from({ length: 20 }, () => new Leader('work', { connection, ...CALM }));
    onTestFinished(async () => {
      await Promise.all(all.map((each) => each.close()));
      await connection.close();
    });
    await Promise.all(all.map((each) => each.waitUntilReady()));
    expect(all.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    await sides.threadRenews();
    const count = (...of: Side[]): number =>
      of.flatMap((side) => TRAFFIC.map((verb) => sides.count('called', side, verb))).reduce((sum, calls) => sum + calls, 0);
    const perBeat = async (noise: () => Promise<unknown>): Promise<number> => {
      const [before, renewals, start] = [count('loop', 'thread'), sides.count('called', 'thread', 'renew'), monotonicNow()];
      while (monotonicNow() - start < 3 * CALM.heartbeatInterval) await noise();
      expect(sides.count('called', 'thread', 'renew'), 'the thread renews').toBeGreaterThan(renewals);
      return (count('loop', 'thread') - before) / 3;
    };
    const onLoop = sides.count('called', 'loop', 'renew');
    const quiet = await perBeat(() => new Promise((resolve) => setTimeout(resolve, 50)));
    const busy = await perBeat(() => scene.queue.add('noise', {}));
    console.log(`${engine}: 20 instances: ${quiet.toFixed(1)} calls per beat on a quiet queue, ${busy.toFixed(1)} on a busy one`);
    expect(sides.count('called', 'loop', 'renew'), 'the event loop does not').toBe(onLoop);
    // One ask and one renewal a beat each, one probe a second each where the store has hints.
    expect(quiet).toBeLessThan(20 * 4);
    expect(busy).toBeLessThan(20 * 12);
  });
});
