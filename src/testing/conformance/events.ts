// Facet: the event log records every change, in order and without gaps.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import { EVENTS_KEPT, STALLED_REASON, type StoredEvent } from '../../store/contract/index.js';
import { nth, only } from './expect.js';
import { completed, delayed, failed, newJob, released, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function events(test: Test): void {
  test('add records added{jobName}, then waiting or delayed{delay}, or duplicated for an id that exists', async (scene) => {
    const delayMs = scene.ms(500_000);
    await fallsDue(scene, delayMs, () => scene.add({ id: 'a', name: 'mail' }, { id: 'b', delayMs }, { id: 'a' }));
    const recorded = await scene.events();
    assert.deepEqual(about(recorded, 'a'), ['added', 'waiting', 'duplicated']);
    assert.deepEqual(about(recorded, 'b'), ['added', 'delayed']);
    assert.equal(only(recorded.filter(({ jobId, name }) => jobId === 'a' && name === 'added'))['jobName'], 'mail');
  });

  test('claim records waiting{prev: delayed} for due jobs, and active{prev: waiting}', async (scene) => {
    await scene.add({ id: 'due', delayMs: scene.ms(1) }, { id: 'now' });
    const session = await scene.session();
    await scene.pass(2);
    const recorded = await eventsOf(scene, () => scene.claim(session, 2));
    assert.deepEqual(about(recorded, 'due', 'prev'), ['waiting delayed', 'active waiting']);
    assert.deepEqual(about(recorded, 'now', 'prev'), ['active waiting']);
  });

  test('settle records completed{returnvalue, prev}, and drained after the last job', async (scene) => {
    const { job } = await scene.running();
    const recorded = await eventsOf(scene, () => scene.finish(completed(job)));
    assert.deepEqual(names(recorded), ['completed', 'drained']);
    assert.deepEqual(
      [nth(recorded, 0).jobId, nth(recorded, 0)['returnvalue'], nth(recorded, 0)['prev']],
      [job.id, '"done"', 'active'],
    );
  });

  test('settle records failed{failedReason, prev}, then retries-exhausted{attemptsMade}', async (scene) => {
    const { job } = await scene.running();
    const recorded = await eventsOf(scene, () => scene.finish(failed(job)));
    assert.deepEqual(names(recorded), ['failed', 'retries-exhausted', 'drained']);
    assert.deepEqual(
      [nth(recorded, 0).jobId, nth(recorded, 0)['failedReason'], nth(recorded, 0)['prev']],
      [job.id, 'broken', 'active'],
    );
    assert.deepEqual([nth(recorded, 1).jobId, Number(nth(recorded, 1)['attemptsMade'])], [job.id, 1]);
  });

  test('settle records no retries-exhausted when a job fails before its last attempt', async (scene) => {
    const session = await scene.session();
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'gone' });
    const [a, b, c, gone] = await scene.claim(session, 4);
    assert(a && b && c && gone);
    const early = (job: ClaimedJob, keep = {}): Outcome => ({ ...failed(job), keep, early: true }) as Outcome;
    const recorded = await eventsOf(scene, () => scene.finish(early(a), failed(b), early(c), early(gone, { count: 0 })));
    assert.deepEqual(about(recorded, 'a'), ['failed']);
    assert.deepEqual(about(recorded, 'b'), ['failed', 'retries-exhausted']);
    assert.deepEqual(about(recorded, 'c'), ['failed']);
    assert.deepEqual(about(recorded, 'gone'), ['failed']);
    await scene.add({ id: 'alone' });
    const alone = await scene.claimOne(session);
    assert.deepEqual(about(await eventsOf(scene, () => scene.finish(early(alone))), 'alone'), ['failed']);
    assert.equal((await scene.job('alone')).attemptsMade, 1);
  });

  test('settle records drained only when a job finished and no job is waiting or active', async (scene) => {
    await scene.add({}, {}, {}, { delayMs: scene.ms(5_000) });
    const session = await scene.session();
    const [a, b] = await scene.claim(session, 2);
    assert(a && b);
    assert.deepEqual(names(await eventsOf(scene, () => scene.finish(completed(a)))), ['completed'], 'one active, one waiting');
    const c = await scene.claimOne(session);
    assert.deepEqual(names(await eventsOf(scene, () => scene.finish(completed(b)))), ['completed'], 'one active');
    assert.deepEqual(names(await eventsOf(scene, () => scene.finish(released(c)))), ['waiting'], 'nothing finished');
    const again = await scene.claimOne(session);
    assert.deepEqual(names(await eventsOf(scene, () => scene.finish(delayed(again, 100_000)))), ['delayed'], 'nothing finished');
    const { job } = await scene.running();
    assert.deepEqual(
      names(await eventsOf(scene, () => scene.finish(completed(job)))),
      ['completed', 'drained'],
      'delayed ones do not count',
    );
  });

  test('retry records waiting{prev: active, failedReason} or delayed{delay, failedReason}', async (scene) => {
    const { session, job } = await scene.running();
    const [waiting] = await eventsOf(scene, () => scene.finish(retried(job)));
    assert.deepEqual([waiting?.name, waiting?.['prev'], waiting?.['failedReason']], ['waiting', 'active', 'not yet']);
    const again = await scene.claimOne(session);
    const late = await fallsDue(scene, scene.ms(500_000), () => scene.finish(retried(again, scene.ms(500_000))));
    assert.equal(late['failedReason'], 'not yet');
  });

  test('delay records delayed{delay}, and release records waiting{prev: active}', async (scene) => {
    const { session, job } = await scene.running();
    const [waiting, ...none] = await eventsOf(scene, () => scene.finish(released(job)));
    assert.deepEqual([waiting?.name, waiting?.['prev'], none], ['waiting', 'active', []]);
    const again = await scene.claimOne(session);
    await fallsDue(scene, scene.ms(500_000), () => scene.finish(delayed(again, scene.ms(500_000))));
  });

  test('settle with a claim records the outcomes before the claim', async (scene) => {
    const { session, job } = await scene.running();
    await scene.add({ id: 'next' });
    const call = scene.call(session);
    const request = scene.request(session, 1, { seq: call.seq });
    const recorded = await eventsOf(scene, () => scene.store.settle(scene.queue, [completed(job)], call, request));
    assert.deepEqual(
      recorded.map(({ name, jobId }) => [name, jobId]),
      [
        ['completed', job.id],
        ['active', 'next'],
      ],
    );
  });

  test('sweep records stalled, then waiting{prev: active} or failed{failedReason, prev: active}', async (scene) => {
    const id = await scene.addOne();
    for (const expected of [
      ['stalled', 'waiting active'],
      ['stalled', 'failed active'],
    ]) {
      await scene.claimOne(await scene.briefSession());
      await scene.perish();
      const recorded = await eventsOf(scene, () => scene.sweep());
      assert.deepEqual(about(recorded, id, 'prev').slice(0, 2), expected);
      const fail = recorded.find(({ name }) => name === 'failed');
      if (fail) assert.equal(fail['failedReason'], STALLED_REASON);
    }
  });

  test('closing a session records waiting{prev: active}, and a close as a crash records what a sweep records', async (scene) => {
    const id = await scene.addOne();
    const recorded: string[][] = [];
    for (const how of ['closed', 'crashed'] as const) {
      const session = await scene.session();
      await scene.claimOne(session);
      const close = () => scene.store.closeSessions([{ queue: scene.queue, id: session }], how);
      recorded.push(about(await eventsOf(scene, close), id, 'prev'));
    }
    assert.deepEqual(recorded, [['waiting active'], ['stalled', 'waiting active']]);
  });

  test.needs('changing')('revoking records waiting{prev: active}', async (scene) => {
    const { job } = await scene.running();
    const revoke = () => scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' });
    assert.deepEqual(about(await eventsOf(scene, revoke), job.id, 'prev'), ['waiting active']);
  });

  test.needs('control', 'changing')(
    'control verbs record progress{data}, waiting{prev}, delayed{delay}, removed{prev}, cleaned{count}, paused, resumed',
    async (scene) => {
      const { store, queue } = scene;
      const { job } = await scene.running();
      const progress = only(
        await eventsOf(scene, () => store.write(queue, [{ jobId: job.id, kind: 'progress', progress: '{"at":5}' }])),
      );
      assert.deepEqual([progress.name, progress.jobId, progress['data']], ['progress', job.id, '{"at":5}']);
      await scene.finish(failed(job));
      const retry = await eventsOf(scene, () => store.change(queue, [job.id], retryFrom('failed')));
      assert.deepEqual(about(retry, job.id, 'prev'), ['waiting failed']);
      await scene.add({ id: 'late', delayMs: scene.ms(500_000) });
      const delayMs = scene.ms(900_000);
      const putOff = await fallsDue(scene, delayMs, () => store.change(queue, ['late'], { kind: 'delay', delayMs }));
      assert.equal(putOff.jobId, 'late');
      const promoted = await eventsOf(scene, () => store.change(queue, ['late'], { kind: 'promote' }));
      assert.deepEqual(about(promoted, 'late', 'prev'), ['waiting delayed']);
      assert.deepEqual(about(await eventsOf(scene, () => store.change(queue, ['late'], { kind: 'remove' })), 'late', 'prev'), [
        'removed waiting',
      ]);
      const cleaned = await eventsOf(scene, () => store.change(queue, { lists: ['waiting'], limit: 10 }, { kind: 'remove' }));
      assert.equal(Number(only(cleaned.filter(({ name }) => name === 'cleaned'))['count']), 1);
      for (const nothing of [
        { lists: ['waiting' as const, 'failed' as const], limit: 10 },
        { lists: ['active' as const], limit: 10 },
        { lists: [], limit: 0 },
      ]) {
        const recorded = await eventsOf(scene, () => store.change(queue, nothing, { kind: 'remove' }));
        assert.deepEqual([names(recorded), Number(recorded[0]?.['count'])], [['cleaned'], 0]);
      }
      assert.deepEqual(names(await eventsOf(scene, () => store.configure(queue, { paused: true }))), ['paused']);
      assert.deepEqual(names(await eventsOf(scene, () => store.configure(queue, { paused: false }))), ['resumed']);
    },
  );

  test.needs('changing')('retry and promote by selection record waiting{prev} for each job', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    await scene.add({ id: 'late', delayMs: scene.ms(500) });
    const { store, queue } = scene;
    const recorded = await eventsOf(scene, async () => {
      await store.change(queue, { lists: ['completed'], limit: 5 }, retryFrom('completed'));
      await store.change(queue, { lists: ['delayed'], limit: 5 }, { kind: 'promote' });
    });
    assert.deepEqual(
      [about(recorded, job.id, 'prev'), about(recorded, 'late', 'prev')],
      [['waiting completed'], ['waiting delayed']],
    );
  });

  test.needs('control', 'changing')('refused calls record no events', async (scene) => {
    const { job } = await scene.running();
    const stale = { ...job, token: 'stale' };
    const { store, queue } = scene;
    const recorded = await eventsOf(scene, async () => {
      await scene.settle(completed(stale), failed(stale), completed({ ...job, id: 'ghost' }));
      await store.write(queue, [{ jobId: job.id, token: 'stale', kind: 'progress', progress: '1' }]);
      await store.change(queue, [job.id], { kind: 'promote' });
      await store.change(queue, [job.id, 'ghost'], { kind: 'remove' });
      await store.change(queue, ['ghost'], { kind: 'revoke', reason: 'r' });
      await store.change(queue, { lists: ['failed'], limit: 5 }, retryFrom('failed'));
      await scene.sweep();
    });
    assert.deepEqual(recorded, []);
  });

  test('event ids have no gaps, and a reader that continues from its last id misses no event', async (scene) => {
    const read: StoredEvent[] = [];
    let last = (await scene.store.events(scene.queue, undefined, 10)).last;
    const session = await scene.session();
    for (let round = 0; round < 6; round += 1) {
      await scene.addMany(round);
      await scene.finish(...(await scene.claim(session, 2)).map((job) => completed(job)));
      for (;;) {
        const reply = await scene.store.events(scene.queue, last, 3);
        assert(reply.events.length <= 3, 'no more than asked for');
        read.push(...reply.events);
        last = reply.last;
        if (reply.events.length === 0) break;
      }
    }
    assert.deepEqual(read, await scene.events());
    assertDense(read);
    assert.equal(last, nth(read, read.length - 1).id);
  });

  test('events without `after` returns no events and the last id', async (scene) => {
    await scene.add({});
    const { events: none, last } = await scene.store.events(scene.queue, undefined, 10);
    assert.deepEqual(none, []);
    await scene.add({ id: 'new' });
    const { events: fresh } = await scene.store.events(scene.queue, last, 10);
    assert.deepEqual(about(fresh, 'new'), names(fresh), 'only what came later');
    assert.equal(fresh.length, 2);
  });

  test('events returns no events and the same last id when nothing is new', async (scene) => {
    await scene.add({});
    const end = await scene.lastEvent();
    assert.deepEqual(await scene.store.events(scene.queue, end, 10), { events: [], last: end });
  });

  test.needs('control')('forget keeps the newest events and does not disturb readers', async (scene) => {
    await scene.addMany(20);
    const before = await scene.events();
    const went = await scene.store.forget(scene.queue, { events: 6 });
    const kept = await scene.events();
    assert.equal(went + kept.length, before.length);
    assert(kept.length >= 6 && kept.length < before.length, `${kept.length} are left`);
    assert.deepEqual(kept, before.slice(-kept.length));
    await scene.add({});
    assertDense(await scene.events());
    assert.equal((await scene.events(nth(before, before.length - 1).id)).length, 2);
  });

  test.needs('control')('events returns how many events a reader missed after trimming', async (scene) => {
    await scene.addMany(20);
    const before = await scene.events();
    const [second, newest] = [nth(before, 1).id, nth(before, before.length - 1).id];
    assert.equal((await scene.store.events(scene.queue, second, 5)).missed, undefined);
    await scene.store.forget(scene.queue, { events: 6 });
    const cut = await scene.store.events(scene.queue, second, 5);
    assert.equal(cut.missed, nth(cut.events, 0).id - second - 1);
    assert.equal((await scene.store.events(scene.queue, cut.last, 5)).missed, undefined);
    await scene.store.forget(scene.queue, { events: 0 });
    const none = await scene.store.events(scene.queue, second, 5);
    assert.deepEqual([none.events, none.last, none.missed], [[], newest, newest - second]);
    assert.equal((await scene.store.events(scene.queue, newest, 5)).missed, undefined);
  });

  test.needs('control')('event ids continue after all events were trimmed', async (scene) => {
    await scene.addMany(3);
    const end = await scene.lastEvent();
    await scene.store.forget(scene.queue, { events: 0 });
    assert.equal(await scene.lastEvent(), end);
    await scene.add({});
    assert.deepEqual(
      (await scene.events(end)).map(({ id }) => id),
      [end + 1, end + 2],
    );
  });

  test(`the log keeps the newest ${EVENTS_KEPT} events`, async (scene) => {
    const jobs = Array.from({ length: EVENTS_KEPT / 2 + 100 }, () => newJob());
    await scene.store.add(scene.queue, jobs, scene.call('p'));
    const end = await scene.lastEvent();
    const { events: kept } = await scene.store.events(scene.queue, end - EVENTS_KEPT, EVENTS_KEPT);
    assert.equal(kept.length, EVENTS_KEPT);
    assertDense(kept);
  });

  test.needs('control', 'changing')('a reader gets new events after the queue was forgotten', async (scene) => {
    await scene.addMany(3);
    const end = await scene.lastEvent();
    await scene.store.change(scene.queue, { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
    await scene.store.forget(scene.queue, { all: true });
    await scene.add({ id: 'new' });
    assert(about(await scene.events(end), 'new').includes('added'), 'ids go on counting, or the listener would wait for ever');
  });

  test.shared('two connections write one event log without gaps and read the same order', async (scene) => {
    const peer = await scene.peer();
    const add = (side: Scene, caller: string) => side.store.add(scene.queue, [newJob()], { caller, seq: 1 });
    await Promise.all(Array.from({ length: 20 }, (_, n) => add(n % 2 === 0 ? scene : peer, `p${n}`)));
    const recorded = await scene.events();
    assert.equal(recorded.length, 40);
    assertDense(recorded);
    assert.deepEqual(await peer.events(), recorded);
  });
}

/** Calls `act`, and checks that its one `delayed` event contains the due time of the job on the store's clock. */
async function fallsDue(scene: Scene, delayMs: number, act: () => Promise<unknown>): Promise<StoredEvent> {
  const before = await storeTime(scene);
  const late = only((await eventsOf(scene, act)).filter(({ name }) => name === 'delayed'));
  const after = await storeTime(scene);
  const due = late['delay'];
  assert.equal(typeof due, 'number');
  assert(Number(due) >= before + delayMs && Number(due) <= after + delayMs + 2, `${due} is ${delayMs} ms after ${before}`);
  return late;
}

async function storeTime(scene: Scene): Promise<number> {
  const id = await scene.session();
  const session = (await scene.store.sessions(scene.queue)).find((info) => info.id === id);
  assert(session);
  return session.since;
}

async function eventsOf(scene: Scene, act: () => Promise<unknown>): Promise<StoredEvent[]> {
  const before = await scene.lastEvent();
  await act();
  return scene.events(before);
}

function names(recorded: StoredEvent[]): string[] {
  return recorded.map(({ name }) => name);
}

/** Returns the names of the events of one job, each with the value of `field` if it has one. */
function about(recorded: StoredEvent[], id: string, field?: string): string[] {
  return recorded
    .filter(({ jobId }) => jobId === id)
    .map((event) => [event.name, ...(field !== undefined && event[field] !== undefined ? [event[field]] : [])].join(' '));
}

function assertDense(recorded: StoredEvent[]): void {
  recorded.slice(1).forEach((event, index) => {
    assert.equal(event.id, nth(recorded, index).id + 1, 'no gap between the ids');
  });
}
