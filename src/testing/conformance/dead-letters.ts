// Facet: dead letters, and their way back.
import assert from 'node:assert/strict';
import type { Origin } from '../../job/origin.js';
import { only } from './expect.js';
import { FamilyScene } from './family-scene.js';
import { completed, failed, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function deadLetters(test: Test): void {
  /** The second queue of the scene gets the letters of the first one. */
  type LetterTest = (title: string, body: (family: FamilyScene, scene: Scene, letters: Scene) => Promise<void>) => void;
  const testOf =
    (ofLevel: Test): LetterTest =>
    (title, body) =>
      ofLevel.families(title, (scene) => {
        const family = new FamilyScene(scene);
        return body(family, scene, family.kids);
      });

  const letterTest = testOf(test);

  letterTest('a job that fails for good sends one letter', async (family, scene, letters) => {
    const content = { name: 'pay', data: '{"n":1}', opts: '{"attempts":1}', timestamp: 1_700_000_000_001, priority: 2 };
    await scene.add({ id: 'a', deadLetter: letters.queue, ...content });
    const job = await family.claim(scene, 'a');
    await scene.finish(failed(job));
    await family.relay();
    const id = `${scene.queue}:a:${job.fence}`;
    const { name, data, opts, timestamp, priority, state, origin } = await letters.job(id);
    assert.deepEqual({ name, data, opts, timestamp, priority, state }, { ...content, priority: 0, state: 'waiting' });
    const { failedOn, ...rest } = origin as Origin;
    const expected = {
      queue: scene.queue,
      id: 'a',
      failedReason: 'broken',
      attemptsMade: 1,
      priority: 2,
      deadLetter: letters.queue,
    };
    assert.deepEqual(rest, expected);
    assert.equal(failedOn, (await scene.job('a')).finishedOn);
    assert.deepEqual(await family.eventsOf(letters, id), ['added', 'waiting']);
    assert.equal(await scene.stateOf('a'), 'failed');
  });

  letterTest('a job that is removed on failing sends its letter', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    await scene.finish(failed(await family.claim(scene, 'a'), { count: 0 }));
    await family.relay();
    assert.equal(await scene.stateOf('a'), 'missing');
    assert.equal((await letters.list('waiting')).length, 1);
  });

  letterTest('a job that a sweep fails sends its letter, with the fence of its last run', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    await scene.finish(retried(await family.claim(scene, 'a')));
    const job = await scene.claimOne(await scene.briefSession({ maxStalls: 0 }));
    await scene.perish();
    assert.deepEqual((await scene.sweep()).failed, ['a']);
    await family.relay();
    assert.deepEqual(await letters.list('waiting'), [`${scene.queue}:a:${job.fence}`]);
  });

  letterTest('each run that a sweep fails sends one letter, however often stores sweep', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    const first = await stallForGood(family, scene);
    assert.deepEqual(await letters.list('waiting'), [first]);
    await scene.store.change(scene.queue, ['a'], retryFrom('failed'));
    const second = await stallForGood(family, scene);
    assert.deepEqual((await letters.list('waiting')).toSorted(), [first, second].toSorted());
    assert.notEqual(first, second);
  });

  testOf(test.needs('keeping'))(
    'a stalled job that is sent back sends a letter of a new id at its next stall, and sweeps send no other',
    async (family, scene, letters) => {
      await scene.add({ id: 'a', opts: '{"removeOnFail":true}', deadLetter: letters.queue });
      const sent = new Set<string>();
      for (let round = 0; round < 3; round += 1) {
        const id = await stallForGood(family, scene);
        assert.deepEqual(await letters.list('waiting'), [id]);
        sent.add(id);
        await letters.store.change(letters.queue, [id], { kind: 'send', to: scene.queue });
        await family.relay();
        assert.deepEqual([await letters.list('waiting'), await scene.list('waiting')], [[], ['a']]);
      }
      assert.equal(sent.size, 3);
    },
  );

  letterTest('a job that completes, is retried or has lost its lock sends no letter', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    await scene.finish(retried(await family.claim(scene, 'a')));
    const job = await family.claim(scene, 'a');
    await scene.store.change(scene.queue, ['a'], { kind: 'revoke', reason: 'r' });
    assert.deepEqual(await scene.settle(failed(job)), ['lost']);
    await scene.finish(completed(await family.claim(scene, 'a')));
    await family.relay();
    assert.deepEqual(await letters.list('waiting'), []);
  });

  letterTest('a repeated finish sends no second letter, and a second failure does', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    const session = await family.session(scene);
    const job = await family.claim(scene, 'a');
    const call = scene.call(session);
    await scene.store.settle(scene.queue, [failed(job)], call);
    await scene.store.settle(scene.queue, [failed(job)], call);
    await family.relay();
    assert.equal((await letters.list('waiting')).length, 1);
    await scene.store.change(scene.queue, ['a'], retryFrom('failed'));
    await scene.finish(failed(await family.claim(scene, 'a')));
    await family.relay();
    assert.equal((await letters.list('waiting')).length, 2);
  });

  testOf(test.needs('keys'))('a letter that is sent back is the job again, under its old id', async (family, scene, letters) => {
    await scene.add({ id: 'a', name: 'pay', data: '1', lockKey: 'k', deadLetter: letters.queue });
    await scene.finish(failed(await family.claim(scene, 'a'), { count: 0 }));
    await family.relay();
    const id = only(await letters.list('waiting'));
    const send = { kind: 'send', to: scene.queue } as const;
    assert.deepEqual((await letters.store.change(letters.queue, [id], send)).changed, [id]);
    await family.relay();
    assert.equal(await letters.stateOf(id), 'missing');
    assert.equal((await family.eventsOf(letters, id)).at(-1), 'removed from waiting');
    const job = await family.claim(scene, 'a');
    assert.deepEqual(
      [job.name, job.data, job.attemptsMade, job.deadLetter, job.origin],
      ['pay', '1', 0, letters.queue, undefined],
    );
    await scene.add({ id: 'same-key', lockKey: 'k' });
    assert.deepEqual(await scene.claim(await family.session(scene), 1, { jobIds: ['same-key'] }), []);
    assert.deepEqual((await letters.store.change(letters.queue, [id], send)).others, [{ jobId: id, status: 'missing' }]);
  });

  letterTest('a letter that is sent back keeps its own id if the old one is taken', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    await scene.finish(failed(await family.claim(scene, 'a')));
    await family.relay();
    const id = only(await letters.list('waiting'));
    await letters.store.change(letters.queue, [id], { kind: 'send', to: scene.queue });
    await family.relay();
    assert.deepEqual(await scene.list('waiting'), [id]);
    assert.equal(await scene.stateOf('a'), 'failed');
  });

  letterTest('letters are sent back by selection, and other jobs stay', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue }, { id: 'b', deadLetter: letters.queue });
    for (const id of ['a', 'b']) await scene.finish(failed(await family.claim(scene, id), { count: 0 }));
    await family.relay();
    await letters.add({ id: 'ordinary' });
    const selection = { lists: ['waiting' as const], limit: 10 };
    const sent = await letters.store.change(letters.queue, selection, { kind: 'send', to: scene.queue });
    await family.relay();
    assert.equal(sent.changed.length, 2);
    assert.deepEqual(await letters.list('waiting'), ['ordinary']);
    assert.deepEqual((await scene.list('waiting')).toSorted(), ['a', 'b']);
    const other = await letters.store.change(letters.queue, ['ordinary'], { kind: 'send', to: scene.queue });
    assert.deepEqual(other.others, [{ jobId: 'ordinary', status: 'state' }]);
  });

  letterTest('a letter that is active is not sent', async (family, scene, letters) => {
    await scene.add({ id: 'a', deadLetter: letters.queue });
    await scene.finish(failed(await family.claim(scene, 'a')));
    await family.relay();
    const { id } = await letters.claimOne(await family.session(letters));
    const reply = await letters.store.change(letters.queue, [id], { kind: 'send', to: scene.queue });
    assert.deepEqual(reply.others, [{ jobId: id, status: 'locked' }]);
  });
}

/** Lets a run of the job `a` stall over the limit, and sweeps several times, also at once. Returns the id that its letter must have. */
async function stallForGood(family: FamilyScene, scene: Scene): Promise<string> {
  const { fence } = await scene.claimOne(await scene.briefSession({ maxStalls: 0 }), { jobIds: ['a'] });
  await scene.perish();
  const found = [...(await Promise.all([scene.sweep(), scene.sweep()])), await scene.sweep()];
  assert.deepEqual(
    found.flatMap(({ failed }) => failed),
    ['a'],
  );
  await family.relay();
  await scene.sweep();
  await family.relay();
  return `${scene.queue}:a:${fence}`;
}
