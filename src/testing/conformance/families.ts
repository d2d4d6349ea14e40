// Facet: parents that wait for their children, in two queues.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import type { Instruction } from '../../store/contract/index.js';
import { changedAll, ids, only } from './expect.js';
import { CONTINUE, FAIL, FamilyScene, IGNORE, REMOVE } from './family-scene.js';
import { completed, delayed, failed, released, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

type FamilyTest = (title: string, body: (family: FamilyScene, scene: Scene) => Promise<void>) => void;

const waits = ({ id, token }: ClaimedJob, child?: { queue: string; id: string }): Outcome => ({
  kind: 'children',
  jobId: id,
  token,
  ...(child !== undefined && { child }),
});

export function families(test: Test): void {
  const familyTest = testOf(test);
  adding(familyTest);
  ends(familyTest);
  failures(familyTest);
  refusals(familyTest);
  refusedThenDone(familyTest);
  waitingByHand(familyTest);
  existing(familyTest);
  adoptedRuns(familyTest, 'a plain job', {});
  adoptedRuns(testOf(test.needs('groups')), 'a job of a group', { group: 'g' });
  reading(familyTest);
  racing(familyTest);
}

function testOf(test: Test): FamilyTest {
  return (title, body) => test.families(title, (scene) => body(new FamilyScene(scene), scene));
}

function adding(test: FamilyTest): void {
  test('a parent is added in waiting-children and its children are waiting', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    assert.deepEqual(await scene.list('waiting-children'), ['parent']);
    assert.equal((await scene.store.status(scene.queue)).counts['waiting-children'], 1);
    assert.deepEqual(await scene.claim(await scene.session(), 5), []);
    assert.deepEqual((await family.kids.list('waiting')).toSorted(), ['a', 'b']);
    assert.deepEqual((await family.kids.job('a')).parents, [family.parent()]);
    assert.equal(await family.counts(), '2 pending, 0 processed, 0 failed, 0 ignored');
    assert.deepEqual(await family.eventsOf(scene, 'parent'), ['added', 'waiting-children']);
  });

  test('a parent without children goes on in the call that adds it', async (family, scene) => {
    await family.tryAdd({ id: 'parent', waitsForChildren: true });
    assert.equal(await scene.stateOf('parent'), 'waiting');
    assert.deepEqual(await family.eventsOf(scene, 'parent'), ['added', 'waiting-children', 'waiting from waiting-children']);
  });

  test('a family in one queue works as one in two queues', async (family, scene) => {
    const child = { id: 'child', parents: [family.parent()] };
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, child);
    await scene.finish(completed(await family.claim(scene, 'child')));
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  test('a call that adds a family and is repeated returns the first reply and adds nothing', async (family, scene) => {
    const call = scene.call('producer');
    const jobs = [
      {
        name: 'n',
        data: '{}',
        opts: '{}',
        priority: 0,
        delayMs: 0,
        lifo: false,
        timestamp: 0,
        id: 'parent',
        waitsForChildren: true,
      },
      {
        name: 'n',
        data: '{}',
        opts: '{}',
        priority: 0,
        delayMs: 0,
        lifo: false,
        timestamp: 0,
        ...family.child('a', family.parent()),
      },
    ];
    const first = await scene.store.add(scene.queue, jobs, call);
    await family.relay();
    await family.settle('a', (job) => completed(job, { count: 0 }));
    assert.deepEqual(await scene.store.add(scene.queue, jobs, call), first);
    await family.relay();
    assert.equal(await family.kids.stateOf('a'), 'missing');
    assert.equal(await family.counts(), '0 pending, 1 processed, 0 failed, 0 ignored');
  });

  test('a child is added under a parent that exists, in any state', async (family, scene) => {
    await scene.add({ id: 'parent' });
    await family.tryAdd(family.child('a', family.parent()));
    assert.equal(await scene.stateOf('parent'), 'waiting');
    const job = await family.claim(scene, 'parent');
    await family.tryAdd(family.child('b', family.parent()));
    assert.deepEqual(await scene.settle(completed(job)), ['pending']);
    for (const id of ['a', 'b']) await family.settle(id, completed);
    await scene.finish(completed(job));
  });
}

function ends(test: FamilyTest): void {
  test('the last child that completes releases its parent to the front of waiting', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    await scene.add({ id: 'other' });
    await family.settle('a', (job) => completed(job, {}, '"of a"'));
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    await family.settle('b', (job) => completed(job, { count: 0 }, '"of b"'));
    assert.deepEqual(await scene.list('waiting'), ['parent', 'other']);
    assert.equal((await scene.store.status(scene.queue)).counts['waiting-children'], 0);
    const { links } = await family.links();
    assert.deepEqual(links.map(({ child, state, text }) => `${child.id} ${state} ${text}`).toSorted(), [
      'a processed "of a"',
      'b processed "of b"',
    ]);
    assert.deepEqual(await family.eventsOf(scene, 'parent'), ['added', 'waiting-children', 'waiting from waiting-children']);
  });

  test('a released parent becomes delayed for its delay, and keeps its priority', async (family, scene) => {
    await family.add({ a: undefined }, { delayMs: scene.ms(100), priority: 3 });
    assert.equal((await scene.job('parent')).delay, scene.ms(100));
    await family.settle('a', completed);
    assert.equal(await scene.stateOf('parent'), 'delayed');
    await scene.pass(101);
    assert.deepEqual(await scene.order(), ['parent']);
    assert.equal((await scene.job('parent')).priority, 3);
  });

  test('a parent in a paused queue is released to waiting', async (family, scene) => {
    await family.add({ a: undefined });
    await scene.store.configure(scene.queue, { paused: true });
    await family.settle('a', completed);
    assert.deepEqual(await scene.list('waiting'), ['parent']);
  });

  for (const [how, outcomeOf] of Object.entries({
    'is retried': (job: ClaimedJob) => retried(job),
    'is delayed': (job: ClaimedJob) => delayed(job, 60_000),
    'is released': released,
    'fails for good without an instruction': (job: ClaimedJob) => failed(job),
  })) {
    test(`a parent goes on waiting when its child ${how}`, async (family, scene) => {
      await family.add({ a: undefined });
      await family.settle('a', outcomeOf);
      assert.equal(await scene.stateOf('parent'), 'waiting-children');
      assert.equal(await family.counts(), '1 pending, 0 processed, 0 failed, 0 ignored');
    });
  }

  test('a stale token of a child sends nothing to the parent', async (family, scene) => {
    await family.add({ a: undefined });
    const job = await family.claim(family.kids, 'a');
    await family.kids.store.change(family.kids.queue, ['a'], { kind: 'revoke', reason: 'r' });
    assert.deepEqual(await family.kids.settle(completed(job)), ['lost']);
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
  });

  test('a child that is retried after it has finished makes its link pending again', async (family, scene) => {
    await family.add({ a: undefined, b: undefined });
    await family.settle('a', completed);
    const retry = { kind: 'retry', from: 'completed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;
    assert.deepEqual(await family.kids.store.change(family.kids.queue, ['a'], retry), changedAll('a'));
    await family.relay();
    assert.equal(await family.counts(), '2 pending, 0 processed, 0 failed, 0 ignored');
    await family.settle('b', completed);
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    await family.settle('a', (job) => completed(job, {}, '"again"'));
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  test('a child that failed without an instruction releases its parent when it is retried and completes', async (family, scene) => {
    await family.add({ a: undefined });
    await family.settle('a', failed);
    const retry = { kind: 'retry', from: 'failed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;
    await family.kids.store.change(family.kids.queue, { lists: ['failed'], limit: 5 }, retry);
    await family.relay();
    await family.settle('a', completed);
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });
}

function failures(test: FamilyTest): void {
  const cases: [string, Instruction, parent: string, counts: string][] = [
    ['fails its parent', FAIL, 'waiting', '1 pending, 0 processed, 1 failed, 0 ignored'],
    ['lets its parent continue at once', CONTINUE, 'waiting', '1 pending, 0 processed, 0 failed, 1 ignored'],
    ['is ignored', IGNORE, 'waiting-children', '1 pending, 0 processed, 0 failed, 1 ignored'],
    ['is removed from its parent', REMOVE, 'waiting-children', '1 pending, 0 processed, 0 failed, 0 ignored'],
  ];
  for (const [title, instruction, state, counts] of cases) {
    test(`a child with a sibling that ${title} fails for good`, async (family, scene) => {
      await family.add({ a: instruction, b: undefined });
      await family.settle('a', failed);
      assert.equal(await scene.stateOf('parent'), state);
      assert.equal(await family.counts(), counts);
      const found = (await family.links()).links.find(({ child }) => child.id === 'a');
      if (instruction.link !== 'removed') assert.equal(found?.text, 'broken');
      else assert.equal(found, undefined);
    });

    test(`a lone child that ${title} fails for good and releases its parent`, async (family, scene) => {
      await family.add({ a: instruction });
      await family.settle('a', failed);
      assert.equal(await scene.stateOf('parent'), 'waiting');
    });

    test(`a child that ${title} fails in a crashed session`, async (family, scene) => {
      await family.add({ a: instruction });
      await family.claim(family.kids, 'a');
      const id = await family.session(family.kids);
      await family.kids.store.closeSessions([{ queue: family.kids.queue, id }], 'crashed');
      await family.relay();
      assert.equal(await family.kids.stateOf('a'), 'failed');
      assert.equal(await scene.stateOf('parent'), 'waiting');
    });

    test(`a child that ${title} is failed by a sweep`, async (family, scene) => {
      await family.add({ a: instruction });
      await family.kids.claimOne(await family.kids.briefSession({ maxStalls: 0 }));
      await scene.perish();
      assert.deepEqual((await family.kids.sweep()).failed, ['a']);
      await family.relay();
      assert.equal(await scene.stateOf('parent'), 'waiting');
    });
  }

  test('a doomed parent names the child, fails, and is not doomed when it is retried', async (family, scene) => {
    await family.add({ a: FAIL }, { delayMs: scene.ms(1_000) });
    await family.settle('a', failed);
    const job = await family.claim(scene, 'parent');
    assert.deepEqual(job.doomedBy, family.kid('a'));
    await scene.finish(failed(job));
    assert.equal((await scene.job('parent')).doomedBy, undefined);
    assert.deepEqual((await family.eventsOf(scene, 'parent')).slice(1, 4), [
      'waiting-children',
      'waiting from waiting-children',
      'active from waiting',
    ]);
  });

  test('a parent that is delayed is doomed and waits at once', async (family, scene) => {
    await family.add({ a: CONTINUE, b: FAIL }, { delayMs: scene.ms(1_000) });
    await family.settle('a', failed);
    assert.equal(await scene.stateOf('parent'), 'delayed');
    await family.settle('b', failed);
    assert.equal(await scene.stateOf('parent'), 'waiting');
    assert.deepEqual((await scene.job('parent')).doomedBy, family.kid('b'));
  });

  test('a parent that has finished is not doomed', async (family, scene) => {
    await family.add({ a: CONTINUE, b: FAIL });
    await family.settle('a', failed);
    await scene.finish(failed(await family.claim(scene, 'parent')));
    await family.settle('b', failed);
    const { state, doomedBy } = await scene.job('parent');
    assert.deepEqual([state, doomedBy], ['failed', undefined]);
  });

  test('a parent that is active is not doomed, but cannot complete', async (family, scene) => {
    await family.add({ a: CONTINUE, b: FAIL });
    await family.settle('a', failed);
    const job = await family.claim(scene, 'parent');
    await family.settle('b', failed);
    assert.equal((await scene.job('parent')).doomedBy, undefined);
    assert.deepEqual(await scene.settle(completed(job), waits(job)), ['unsuccessful', 'unsuccessful']);
    assert.equal((await scene.lockOf('parent'))?.token, job.token);
    await scene.finish(failed(job));
  });

  test('the failure of a doomed parent follows its own instruction to the grandparent', async (family, scene) => {
    const middle = { id: 'middle', queue: family.kids.queue, waitsForChildren: true, parents: [family.parent('parent', FAIL)] };
    const leaf = { id: 'leaf', parents: [{ ...family.kid('middle'), onFailure: FAIL }] };
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, middle, leaf);
    await scene.finish(failed(await family.claim(scene, 'leaf')));
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    await family.settle('middle', (job) => failed(job, { count: 0 }));
    assert.deepEqual((await scene.job('parent')).doomedBy, family.kid('middle'));
  });
}

function refusals(test: FamilyTest): void {
  test('a child whose parent does not exist refuses the whole call', async (family, scene) => {
    const replies = await family.tryAdd(
      { id: 'parent', waitsForChildren: true },
      family.child('a', family.parent()),
      family.child('b', family.parent('nowhere')),
    );
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['refused', 'refused', 'noParent'],
    );
    assert.deepEqual(
      await scene.store.queues(1_000),
      (await scene.store.queues(1_000)).filter((name) => !name.startsWith(scene.queue)),
    );
    assert.equal(await scene.stateOf('parent'), 'missing');
    assert.equal(await family.kids.stateOf('a'), 'missing');
  });

  test('a job with a living parent gets no other one, unless it shares', async (family, scene) => {
    await family.add({ a: undefined });
    const other = { id: 'other', waitsForChildren: true };
    const replies = await family.tryAdd(other, family.child('a', family.parent('other')));
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['refused', 'otherParent'],
    );
    assert.equal(await scene.stateOf('other'), 'missing');
    await family.tryAdd(other, { ...family.child('a', family.parent('other')), shares: true });
    assert.deepEqual((await family.kids.job('a')).parents, [family.parent(), family.parent('other')]);
    await family.settle('a', completed);
    assert.deepEqual((await scene.list('waiting')).toSorted(), ['other', 'parent']);
  });

  test('a parent that has pending children cannot complete, and keeps its lock', async (family, scene) => {
    await family.add({ a: CONTINUE, b: undefined });
    await family.settle('a', failed);
    const job = await family.claim(scene, 'parent');
    const before = await scene.snapshot('parent');
    assert.deepEqual(await scene.settle(completed(job)), ['pending']);
    assert.deepEqual(await scene.snapshot('parent'), before);
    await scene.finish(failed(job));
  });
}

function refusedThenDone(test: FamilyTest): void {
  test('an outcome that is refused leaves the job to a later outcome of the same call', async (family, scene) => {
    await family.add({ a: CONTINUE, b: undefined });
    await family.settle('a', failed);
    const job = await family.claim(scene, 'parent');
    assert.deepEqual(await scene.settle(completed(job), failed(job), completed(job)), ['pending', 'done', 'lost']);
    assert.equal(await scene.stateOf('parent'), 'failed');
  });
}

function waitingByHand(test: FamilyTest): void {
  test('a run moves its job to waiting-children while a child is pending, and no attempt counts', async (family, scene) => {
    await scene.add({ id: 'parent' });
    const job = await family.claim(scene, 'parent');
    await family.tryAdd(family.child('a', family.parent()));
    await scene.finish(waits(job));
    assert.equal(await scene.lockOf('parent'), undefined);
    const { state, attemptsMade, attemptsStarted } = await scene.job('parent');
    assert.deepEqual([state, attemptsMade, attemptsStarted], ['waiting-children', 0, 1]);
    assert.deepEqual((await family.eventsOf(scene, 'parent')).at(-1), 'waiting-children from active');
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    await family.settle('a', completed);
    await scene.finish(completed(await family.claim(scene, 'parent')));
  });

  test('a run whose children have all ended keeps its job', async (family, scene) => {
    await scene.add({ id: 'parent' });
    const job = await family.claim(scene, 'parent');
    assert.deepEqual(await scene.settle(waits(job)), ['ready']);
    await family.tryAdd(family.child('a', family.parent()), family.child('b', family.parent()));
    await family.settle('a', completed);
    assert.deepEqual(await scene.settle(waits(job, family.kid('a'))), ['ready']);
    assert.equal((await scene.lockOf('parent'))?.token, job.token);
    assert.deepEqual(await scene.settle(waits(job, family.kid('b'))), ['done']);
  });

  test('a repeated call that moved a job to waiting-children returns the first reply', async (family, scene) => {
    await scene.add({ id: 'parent' });
    const session = await family.session(scene);
    const job = await family.claim(scene, 'parent');
    await family.tryAdd(family.child('a', family.parent()));
    const call = scene.call(session);
    const first = await scene.store.settle(scene.queue, [waits(job)], call);
    await family.settle('a', completed);
    assert.deepEqual(await scene.store.settle(scene.queue, [waits(job)], call), first);
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  test('a stale token cannot move a job to waiting-children', async (family, scene) => {
    await scene.add({ id: 'parent' });
    const job = await family.claim(scene, 'parent');
    await family.tryAdd(family.child('a', family.parent()));
    await scene.store.change(scene.queue, ['parent'], { kind: 'revoke', reason: 'r' });
    assert.deepEqual(await scene.settle(waits(job)), ['lost']);
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });
}

function existing(test: FamilyTest): void {
  test('a waiting job without a parent is adopted', async (family, scene) => {
    await family.kids.add({ id: 'a' });
    const replies = await family.tryAdd({ id: 'parent', waitsForChildren: true }, family.child('a', family.parent()));
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['added', 'duplicate'],
    );
    assert.deepEqual((await family.kids.job('a')).parents, [family.parent()]);
    await family.settle('a', completed);
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  test('a job that is active when it is adopted counts when it ends', async (family, scene) => {
    await family.kids.add({ id: 'a' });
    const job = await family.claim(family.kids, 'a');
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, family.child('a', family.parent()));
    assert.equal(await scene.stateOf('parent'), 'waiting-children');
    await family.kids.finish(completed(job));
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });

  test('a completed job that is adopted counts at once', async (family, scene) => {
    await family.kids.add({ id: 'a' });
    await family.settle('a', (job) => completed(job, {}, '"before"'));
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, family.child('a', family.parent()));
    assert.equal(await scene.stateOf('parent'), 'waiting');
    assert.equal(only((await family.links()).links).text, '"before"');
  });

  test('a completed job that is adopted does not release a parent that waits for a later child of the call', async (family, scene) => {
    await family.kids.add({ id: 'a' });
    await family.settle('a', completed);
    await family.add({ b: undefined });
    const [a, c] = [family.child('a', family.parent('second')), family.child('c', family.parent('second'))];
    await family.tryAdd({ id: 'second', waitsForChildren: true }, a, c);
    assert.equal(await scene.stateOf('second'), 'waiting-children');
    assert.equal(await family.counts('second'), '1 pending, 1 processed, 0 failed, 0 ignored');
    await family.settle('c', completed);
    assert.equal(await scene.stateOf('second'), 'waiting');
  });

  test('a failed job that gets another parent does not doom its first one again', async (family, scene) => {
    await family.add({ a: FAIL });
    await family.settle('a', failed);
    await scene.finish(failed(await family.claim(scene, 'parent')));
    await scene.store.change(scene.queue, ['parent'], retryFrom('failed'));
    const shared = { ...family.child('a', family.parent('other', FAIL)), shares: true };
    await family.tryAdd({ id: 'other', waitsForChildren: true }, shared);
    assert.deepEqual((await scene.job('other')).doomedBy, family.kid('a'));
    assert.equal((await scene.job('parent')).doomedBy, undefined);
  });

  test('a failed job that is adopted follows its instruction at once', async (family, scene) => {
    for (const id of ['a', 'b']) {
      await family.kids.add({ id });
      await family.settle(id, failed);
    }
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, family.child('a', family.parent('parent', FAIL)));
    assert.deepEqual((await scene.job('parent')).doomedBy, family.kid('a'));
    await family.tryAdd({ id: 'second', waitsForChildren: true }, family.child('b', family.parent('second')));
    assert.equal(await scene.stateOf('second'), 'waiting-children');
  });

  test('a child that is added twice under one parent has one link', async (family) => {
    await family.add({ a: undefined });
    await family.tryAdd(family.child('a', family.parent()));
    assert.equal(await family.counts(), '1 pending, 0 processed, 0 failed, 0 ignored');
    assert.deepEqual((await family.kids.job('a')).parents, [family.parent()]);
  });

  test('a child that is added again under its parent is a duplicate', async (family) => {
    await family.add({ a: undefined });
    assert.deepEqual(await family.tryAdd(family.child('a', family.parent())), [{ id: 'a', status: 'duplicate' }]);
  });

  test('a child whose parent was removed gets another one', async (family, scene) => {
    await family.add({ a: undefined });
    await scene.store.change(scene.queue, ['parent'], { kind: 'remove' });
    await family.relay();
    const replies = await family.tryAdd({ id: 'other', waitsForChildren: true }, family.child('a', family.parent('other')));
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['added', 'duplicate'],
    );
    await family.settle('a', completed);
    assert.equal(await scene.stateOf('other'), 'waiting');
  });

  test('a failed child that is added again under its parent does not doom it again', async (family, scene) => {
    await family.add({ a: FAIL });
    await family.settle('a', failed);
    await scene.finish(failed(await family.claim(scene, 'parent')));
    await scene.store.change(scene.queue, ['parent'], retryFrom('failed'));
    await family.tryAdd(family.child('a', family.parent('parent', FAIL)));
    assert.equal((await scene.job('parent')).doomedBy, undefined);
    assert.equal(await family.counts(), '0 pending, 0 processed, 1 failed, 0 ignored');
  });
}

function adoptedRuns(test: FamilyTest, kind: string, fields: { group?: string }): void {
  test(`${kind} that is adopted while it runs tells its parent in a settle that claims too`, async (family, scene) => {
    const { kids } = family;
    await kids.add({ id: 'a', ...fields }, { id: 'next', ...fields });
    const session = await kids.session();
    const job = await kids.claimOne(session);
    await family.tryAdd({ id: 'parent', waitsForChildren: true }, family.child('a', family.parent()));
    const request = kids.request(session, 1);
    const call = { caller: session, seq: request.seq };
    const { results, claimed } = await kids.store.settle(kids.queue, [completed(job)], call, request);
    assert.deepEqual([results, ids(claimed?.jobs ?? [])], [['done'], ['next']]);
    await family.relay();
    assert.equal(await scene.stateOf('parent'), 'waiting');
  });
}

function reading(test: FamilyTest): void {
  test('the links of a parent are read in pages', async (family, scene) => {
    const names = Array.from({ length: 25 }, (_, n) => `kid-${n}`);
    await family.add(Object.fromEntries(names.map((name) => [name, undefined])));
    for (const name of names.slice(0, 5)) await family.settle(name, completed);
    const found: string[] = [];
    let after: string | undefined;
    for (let page = 0; page < 10; page += 1) {
      const query = { states: ['pending' as const], limit: 7, ...(after !== undefined && { after }) };
      const reply = await scene.store.children(scene.queue, 'parent', query);
      assert.deepEqual(reply.counts, { pending: 20, processed: 5, failed: 0, ignored: 0 });
      assert(reply.links.length <= 7);
      found.push(...reply.links.map(({ child }) => child.id));
      after = reply.next;
      if (after === undefined) break;
    }
    assert.deepEqual(found.toSorted(), names.slice(5).toSorted());
    assert.deepEqual(await scene.store.children(scene.queue, 'nowhere', { states: ['pending'], limit: 5 }), {
      counts: { pending: 0, processed: 0, failed: 0, ignored: 0 },
      links: [],
    });
  });
}

function racing(test: FamilyTest): void {
  test('200 children that end at once release their parent once', async (family, scene) => {
    const names = Array.from({ length: 200 }, (_, n) => `kid-${n}`);
    await family.add(Object.fromEntries(names.map((name) => [name, undefined])));
    const jobs = await family.kids.claim(await family.session(family.kids), 200);
    assert.equal(ids(jobs).length, 200);
    await Promise.all(jobs.map((job) => family.kids.finish(completed(job))));
    await Promise.all(Array.from({ length: 5 }, () => family.relay()));
    assert.equal(await family.counts(), '0 pending, 200 processed, 0 failed, 0 ignored');
    assert.deepEqual(await scene.list('waiting'), ['parent']);
    const releases = (await family.eventsOf(scene, 'parent')).filter((event) => event === 'waiting from waiting-children');
    assert.equal(releases.length, 1);
  });
}
