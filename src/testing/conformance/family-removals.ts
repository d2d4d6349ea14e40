// Facet: removals in families: of children, of parents with and without their children, by retention and by selection.
import assert from 'node:assert/strict';
import { changedAll } from './expect.js';
import { FAIL, FamilyScene, IGNORE } from './family-scene.js';
import { completed, failed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const REMOVE = { kind: 'remove' } as const;
const WITH_CHILDREN = { kind: 'remove', children: true } as const;

export function familyRemovals(test: Test): void {
  const familyTest = (title: string, body: (family: FamilyScene, scene: Scene) => Promise<void>): void =>
    test.families(title, (scene) => body(new FamilyScene(scene), scene));

  familyTest('a removed child releases its parent before the call returns', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    const { store, queue } = family.kids;
    assert.deepEqual(await store.change(queue, ['a'], REMOVE), changedAll('a'));
    await family.relay();
    assert.equal(await family.counts(), '1 pending, 0 processed, 0 failed, 0 ignored');
    await store.change(queue, ['b'], REMOVE);
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  familyTest('a removed child that has completed leaves its value with the parent', async (family) => {
    await family.add({ a: undefined, b: IGNORE, c: undefined });
    await family.settle('a', (job) => completed(job, {}, '"value"'));
    await family.settle('b', failed);
    await family.kids.store.change(family.kids.queue, ['a', 'b'], REMOVE);
    await family.relay();
    assert.equal(await family.counts(), '1 pending, 1 processed, 0 failed, 1 ignored');
  });

  familyTest('a failed child that is removed on finishing releases its parent', async (family, scene) => {
    await family.add({ a: undefined });
    await family.settle('a', (job) => failed(job, { count: 0 }));
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  familyTest('a failed child that is trimmed later releases its parent', async (family, scene) => {
    await family.add({ a: undefined });
    await family.settle('a', failed);
    await family.kids.add({ id: 'later' });
    await family.settle('later', (job) => failed(job, { count: 1 }));
    assert.equal(await family.kids.stateOf('a'), 'missing');
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  familyTest('children that are removed by selection release their parent', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    await family.kids.store.change(family.kids.queue, { lists: ['waiting'], limit: 10 }, REMOVE);
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  familyTest('a parent in the same queue is removed with its last pending child', async (family, scene) => {
    const child = (id: string) => ({ id, parents: [family.parent()] });
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, child('a'), child('b'));
    await scene.finish(failed(await family.claim(scene, 'a')));
    await scene.store.change(scene.queue, { lists: ['waiting'], limit: 10 }, { kind: 'remove', parentToo: true });
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    await scene.store.change(scene.queue, { lists: ['failed'], limit: 10 }, { kind: 'remove', parentToo: true });
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'missing');
  });

  familyTest('a parent that is removed with its last pending child releases its own parent', async (family, scene) => {
    await family.tryAdd(
      { id: 'top', waitsForChildren: true },
      { id: 'middle', waitsForChildren: true, parents: [family.parent('top')] },
      { id: 'leaf', parents: [family.parent('middle')] },
    );
    await scene.store.change(scene.queue, { lists: ['waiting'], limit: 1 }, { kind: 'remove', parentToo: true });
    await family.relay();
    assert.deepEqual([await scene.stateOf('leaf'), await scene.stateOf('middle')], ['missing', 'missing']);
    assert.equal(await scene.stateOf('top'), 'waiting');
  });

  familyTest('a parent in the same queue stays when a child is removed that had ended', async (family, scene) => {
    const child = (id: string) => ({ id, parents: [family.parent()] });
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, child('a'), child('b'));
    await scene.finish(completed(await family.claim(scene, 'a')));
    await family.relay();
    await scene.store.change(scene.queue, { lists: ['completed'], limit: 10 }, { kind: 'remove', parentToo: true });
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
  });

  familyTest('a parent that waits for children is removed alone, and its children stay', async (family, scene) => {
    await family.add({ a: undefined });
    assert.deepEqual(await scene.store.change(scene.queue, ['parent'], REMOVE), changedAll('parent'));
    await family.relay();
    assert.equal((await scene.store.status(scene.queue)).counts['waiting-children'], 0);
    assert.deepEqual((await family.eventsOf(scene, 'parent')).at(-1), 'removed from waiting-children');
    await family.settle('a', completed);
    assert.equal(await scene.stateOf('parent'), 'missing');
    assert.equal(await family.counts(), '0 pending, 0 processed, 0 failed, 0 ignored');
  });

  familyTest('a parent that is removed on finishing leaves no links to a later parent of its id', async (family, scene) => {
    await family.add({ a: FAIL });
    await family.settle('a', failed);
    await scene.finish(failed(await family.claim(scene, 'parent'), { count: 0 }));
    assert.equal(await family.counts(), '0 pending, 0 processed, 0 failed, 0 ignored');
    await family.add({ b: undefined });
    assert.equal(await family.counts(), '1 pending, 0 processed, 0 failed, 0 ignored');
    await family.settle('b', completed);
    await scene.finish(completed(await family.claim(scene, 'parent'), { count: 0 }));
    assert.equal(await family.counts(), '0 pending, 0 processed, 0 failed, 0 ignored');
  });

  familyTest('parents are removed by selection', async (family, scene) => {
    await family.add({ a: undefined });
    const reply = await scene.store.change(scene.queue, { lists: ['waiting-children'], limit: 10 }, REMOVE);
    assert.deepEqual(reply.changed, ['parent']);
    assert.deepEqual(await scene.list('waiting-children'), []);
  });

  familyTest('a parent is removed with its children, whatever their states, and with theirs', async (family, scene) => {
    const middle = { id: 'middle', queue: family.kids.queue, waitsForChildren: true, parents: [family.parent()] };
    const leaf = { id: 'leaf', parents: [family.kid('middle')] };
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, middle, leaf, family.child('done', family.parent()));
    await family.settle('done', completed);
    await scene.store.change(scene.queue, ['parent'], WITH_CHILDREN);
    await family.relay();
    const states = [scene.stateOf('parent'), family.kids.stateOf('middle'), scene.stateOf('leaf'), family.kids.stateOf('done')];
    assert.deepEqual(await Promise.all(states), ['missing', 'missing', 'missing', 'missing']);
  });

  familyTest('a child that is active, or has another parent, stays when a parent is removed', async (family, scene) => {
    await family.add({ active: undefined, shared: undefined, gone: undefined });
    await family.tryAdd(
      { id: 'other', waitsForChildren: true },
      { ...family.child('shared', family.parent('other')), shares: true },
    );
    const job = await family.claim(family.kids, 'active');
    await scene.store.change(scene.queue, ['parent'], WITH_CHILDREN);
    await family.relay();
    assert.equal(await family.kids.stateOf('gone'), 'missing');
    assert.deepEqual((await family.kids.job('shared')).parents, [family.parent('other')]);
    await family.kids.finish(completed(job));
    assert.equal((await family.kids.job('active')).parents, undefined);
  });

  familyTest('a parent and a child are parted, which may release the parent', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    const { store, queue } = scene;
    assert.deepEqual(await store.change(queue, ['parent'], { kind: 'unlink', child: family.kid('a') }), changedAll('parent'));
    await family.relay();
    assert.equal((await family.kids.job('a')).parents, undefined);
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    const again = await store.change(queue, ['parent', 'nowhere'], { kind: 'unlink', child: family.kid('a') });
    assert.deepEqual(
      again.others.map(({ status }) => status),
      ['state', 'missing'],
    );
    await store.change(queue, ['parent'], { kind: 'unlink', child: family.kid('b') });
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
    await family.settle('a', completed);
    assert.equal(await family.counts(), '0 pending, 0 processed, 0 failed, 0 ignored');
  });
  familyTest('a parent and a child that has ended are not parted', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    await family.settle('a', completed);
    const reply = await scene.store.change(scene.queue, ['parent'], { kind: 'unlink', child: family.kid('a') });
    await family.relay();
    assert.deepEqual(reply.others, [{ jobId: 'parent', status: 'state' }]);
    assert.equal(await family.counts(), '1 pending, 1 processed, 0 failed, 0 ignored');
    assert.deepEqual((await family.kids.job('a')).parents, [family.parent()]);
  });
}
