// Facet: large payloads. A reply stops at REPLY_BYTES but never before its first item, and the next call returns the rest. The
// event log does not grow with the results that it reports.
import assert from 'node:assert/strict';
import { EVENTS_BYTES_KEPT, EVENT_VALUE_BYTES, REPLY_BYTES } from '../../store/budget.js';
import type { JobsReply } from '../../store/contract/index.js';
import { ids, nth, only } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

/** Returns a JSON text of this many bytes. */
const text = (bytes: number): string => `"${'x'.repeat(bytes - 2)}"`;
/** Bytes of a payload: two of them fit into a reply, three do not. */
const LARGE = Math.floor(REPLY_BYTES * 0.4);

export function large(test: Test): void {
  test('claim stops at the byte budget and returns more', async (scene) => {
    const added = await addLarge(scene, 5);
    const session = await scene.session();
    const first = await scene.tryClaim(session, 5);
    assert.deepEqual(ids(first.jobs), added.slice(0, 2));
    assert.equal(first.more, true);
    assert.equal(first.drained, false);
    assert.equal(nth(first.jobs, 1).data.length, LARGE);
    assert.deepEqual(ids(await scene.claim(session, 5)), added.slice(2, 4));
    const last = await scene.tryClaim(session, 5);
    assert.deepEqual(ids(last.jobs), added.slice(4));
    assert.notEqual(last.more, true);
  });

  test('claim does not return more when it took all jobs asked for', async (scene) => {
    await addLarge(scene, 3);
    const { jobs, more } = await scene.tryClaim(await scene.session(), 2);
    assert.equal(jobs.length, 2);
    assert.notEqual(more, true);
  });

  test('claim returns a job larger than the byte budget alone', async (scene) => {
    const [small, huge, other] = await scene.add({}, { data: text(REPLY_BYTES * 2) }, {});
    const session = await scene.session();
    const first = await scene.tryClaim(session, 3);
    assert.deepEqual([ids(first.jobs), first.more], [[small], true]);
    const second = await scene.tryClaim(session, 3);
    assert.deepEqual([ids(second.jobs), second.more], [[huge], true]);
    assert.deepEqual(ids(await scene.claim(session, 3)), [other]);
  });

  test.needs('keys', 'claims-by-id')(
    'the byte budget limits claims of prioritized jobs, keyed jobs and jobs by id',
    async (scene) => {
      const session = await scene.session();
      for (const kind of [{ priority: 3 }, { lockKey: 'key' }, {}]) {
        const jobs = Array.from({ length: 3 }, (_, n) => ({ ...kind, ...('lockKey' in kind && { lockKey: `key-${n}` }) }));
        const added = await scene.add(...jobs.map((job) => ({ ...job, data: text(LARGE) })));
        const byId = Object.keys(kind).length === 0 ? { jobIds: added } : {};
        const first = await scene.tryClaim(session, 3, byId);
        assert.deepEqual([ids(first.jobs), first.more], [added.slice(0, 2), true], JSON.stringify(kind));
        const second = await scene.tryClaim(session, 3, byId);
        assert.deepEqual(ids(second.jobs), added.slice(2), JSON.stringify(kind));
        await scene.finish(...[...first.jobs, ...second.jobs].map((job) => completed(job)));
      }
    },
  );

  test('a repeated claim under the byte budget returns the jobs of the first claim only', async (scene) => {
    const added = await addLarge(scene, 4);
    const session = await scene.session();
    const request = scene.request(session, 4);
    const first = await scene.store.claim(scene.queue, request);
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual(ids(first.jobs), added.slice(0, 2));
    assert.deepEqual(ids(again.jobs).sort(), added.slice(0, 2).sort());
    assert.equal((await scene.store.status(scene.queue)).counts.active, 2);
  });

  test('settle claims within the byte budget', async (scene) => {
    const added = await addLarge(scene, 5);
    const session = await scene.session();
    const jobs = await scene.claim(session, 1);
    const call = scene.call(session);
    const request = { session, seq: call.seq, count: 4 };
    const { claimed } = await scene.store.settle(
      scene.queue,
      jobs.map((job) => completed(job)),
      call,
      request,
    );
    assert.deepEqual([ids(claimed?.jobs ?? []), claimed?.more], [added.slice(1, 3), true]);
  });

  test('jobs returns records up to the byte budget, and the rest in the next call', async (scene) => {
    const added = await addLarge(scene, 3);
    const asked = ['ghost', ...added];
    const idsOf = ({ jobs, more }: JobsReply) => [jobs.map((record) => record?.id), more];
    const first = await scene.store.jobs(scene.queue, asked);
    assert.deepEqual(idsOf(first), [[undefined, ...asked.slice(1, 3)], true]);
    const rest = await scene.store.jobs(scene.queue, asked.slice(3));
    assert.deepEqual(idsOf(rest), [asked.slice(3), false]);
  });

  test.needs('claims-by-id')('jobs returns a list up to the byte budget, counts results, and returns more', async (scene) => {
    const added = await addLarge(scene, 3);
    const list = (start: number) => scene.store.jobs(scene.queue, { lists: ['waiting'], start, end: -1, asc: true });
    const first = await list(0);
    assert.deepEqual([ids(first.jobs), first.more], [added.slice(0, 2), true]);
    const rest = await list(2);
    assert.deepEqual([ids(rest.jobs), rest.more], [added.slice(2), false]);
    const session = await scene.session();
    for (const id of added) await scene.finish(completed(only(await scene.claim(session, 1, { jobIds: [id] })), {}, text(LARGE)));
    const done = await scene.store.jobs(scene.queue, { lists: ['completed'], start: 0, end: -1, asc: true });
    assert.deepEqual([ids(done.jobs), done.more], [added.slice(0, 1), true]);
  });

  test.needs('control')('logs returns rows up to the byte budget', async (scene) => {
    const { job } = await scene.running();
    const row = 'x'.repeat(LARGE);
    for (let n = 0; n < 3; n += 1) {
      await scene.store.write(scene.queue, [{ kind: 'log', jobId: job.id, token: job.token, row }]);
    }
    const { logs, count } = await scene.store.logs(scene.queue, job.id, { start: 0, end: -1, asc: true });
    assert.deepEqual([logs.length, count], [2, 3]);
    assert.equal((await scene.store.logs(scene.queue, job.id, { start: 2, end: -1, asc: true })).logs.length, 1);
  });

  test('the event of a large result marks it as large and does not copy it', async (scene) => {
    const { session, job } = await scene.running();
    const value = text(EVENT_VALUE_BYTES + 1);
    await scene.finish(completed(job, {}, value));
    const event = await theEvent(scene, 'completed');
    assert.deepEqual([event['large'], event['returnvalue'], event['prev']], [1, undefined, 'active']);
    assert.equal((await scene.job(job.id)).returnvalue, value);
    await scene.add({});
    await scene.finish(completed(await scene.claimOne(session), {}, text(EVENT_VALUE_BYTES)));
    const small = await theEvent(scene, 'completed');
    assert.deepEqual([small['large'], String(small['returnvalue']).length], [undefined, EVENT_VALUE_BYTES]);
  });

  test('the event contains the whole result when the job is removed on finishing', async (scene) => {
    const { job } = await scene.running();
    const value = text(EVENT_VALUE_BYTES * 2);
    await scene.finish(completed(job, { count: 0 }, value));
    const event = await theEvent(scene, 'completed');
    assert.deepEqual([event['large'], event['returnvalue']], [undefined, value]);
  });

  test.needs('control')('the event of a large progress marks it as large and does not copy it', async (scene) => {
    const { job } = await scene.running();
    const progress = text(EVENT_VALUE_BYTES + 1);
    await scene.store.write(scene.queue, [{ kind: 'progress', jobId: job.id, token: job.token, progress }]);
    const event = await theEvent(scene, 'progress');
    assert.deepEqual([event['large'], event['data']], [1, undefined]);
    assert.equal((await scene.job(job.id)).progress, progress);
  });

  test('the size limit of an event value counts bytes, not characters', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job, {}, JSON.stringify('é'.repeat(EVENT_VALUE_BYTES / 2))));
    assert.equal((await theEvent(scene, 'completed'))['large'], 1);
  });

  test('the event log stays within its byte limit, keeps the newest event, and is read in parts', async (scene) => {
    const session = await scene.session();
    const result = text(Math.floor(EVENTS_BYTES_KEPT / 8));
    for (let n = 0; n < 24; n += 1) {
      await scene.add({});
      await scene.finish(completed(await scene.claimOne(session), { count: 0 }, result));
    }
    const parts: number[] = [];
    let kept = 0;
    let newest = 0;
    let completions = 0;
    for (let after = 0; ; ) {
      const { events, last, more } = await scene.store.events(scene.queue, after, 10_000);
      if (events.length === 0) break;
      const bytes = events.reduce((sum, event) => sum + String(event['returnvalue'] ?? '').length, 0);
      completions += events.filter((event) => event.name === 'completed').length;
      for (const event of events) {
        if (event.name === 'completed')
          assert.equal(event['returnvalue'] === undefined, event.large === 1, 'a value that is gone');
      }
      parts.push(bytes);
      kept += bytes;
      newest = last;
      assert(last > after, 'reading goes on');
      assert.equal(more === true, last < (await scene.lastEvent()), 'a cut reply says so');
      after = last;
    }
    assert.equal(newest, await scene.lastEvent());
    assert.equal(completions, 24, 'values go before events');
    assert(kept >= result.length, 'the newest result is there');
    assert(kept <= EVENTS_BYTES_KEPT * 1.5, `${kept} bytes are kept`);
    assert(
      parts.every((bytes) => bytes <= REPLY_BYTES),
      `parts of ${parts.join(', ')} bytes`,
    );
  });
}

function addLarge(scene: Scene, count: number): Promise<string[]> {
  return scene.add(...Array.from({ length: count }, () => ({ data: text(LARGE) })));
}

/** Returns the newest event of that name. */
async function theEvent(scene: Scene, name: string): Promise<Record<string, unknown>> {
  const event = (await scene.events()).findLast((one) => one.name === name);
  assert(event, `an event ${name}`);
  return event;
}
