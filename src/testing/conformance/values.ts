// Facet: values survive. Every string that users may write passes through the store unchanged, character by character.
import assert from 'node:assert/strict';
import { nth, only } from './expect.js';
import { completed, newJob } from './samples.js';
import type { Test } from './suite.js';

export const ODD_TEXTS = [
  'it\'s "quoted" `back` \\ slash',
  "'; DROP TABLE jobs; --",
  '") OR 1=1 /* */',
  'return redis.call("FLUSHALL") ]] --[[',
  '%s %d %% $1 $$ :name ? ?1 @x',
  '* [a-z] ? _ %',
  '{curly} (round) <angle> &amp; a:b:c|d,e;f',
  '../../etc/passwd',
  'ünï©ödé 漢字 🧵👩‍👩‍👧 עברית \u2028\u2029 \ufeff',
  'e\u0301 is not \u00e9',
  '  spaces  around  ',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  '1e3',
  '0x10',
  '1.0',
  '-1',
];

export function values(test: Test): void {
  test('odd texts survive in job id, name, data, options, result and worker name', async (scene) => {
    await scene.add(
      ...ODD_TEXTS.map((text) => ({ id: `${text}!`, name: text, data: JSON.stringify(text), opts: JSON.stringify({ text }) })),
    );
    const jobs = await scene.claim(await scene.session(), ODD_TEXTS.length, { by: nth(ODD_TEXTS, 0) });
    assert.equal(jobs.length, ODD_TEXTS.length);
    for (const [index, text] of ODD_TEXTS.entries()) {
      const job = nth(jobs, index);
      assert.equal(job.id, `${text}!`);
      await scene.finish({ ...completed(job), value: JSON.stringify([text]) } as ReturnType<typeof completed>);
      const record = await scene.job(job.id);
      assert.deepEqual(
        [record.name, record.data, record.opts, record.returnvalue, record.processedBy],
        [text, JSON.stringify(text), JSON.stringify({ text }), JSON.stringify([text]), nth(ODD_TEXTS, 0)],
      );
    }
  });

  test.needs('control')('odd texts survive in log and progress', async (scene) => {
    await scene.add(...ODD_TEXTS.map((text) => ({ id: `${text}!` })));
    const jobs = await scene.claim(await scene.session(), ODD_TEXTS.length);
    for (const [index, text] of ODD_TEXTS.entries()) {
      const { id: jobId, token } = nth(jobs, index);
      await scene.store.write(scene.queue, [
        { jobId, token, kind: 'log', row: text },
        { jobId, token, kind: 'progress', progress: JSON.stringify(text) },
      ]);
      await scene.finish(completed(nth(jobs, index)));
      assert.equal((await scene.job(jobId)).progress, JSON.stringify(text));
      assert.deepEqual((await scene.store.logs(scene.queue, jobId, { start: 0, end: -1, asc: true })).logs, [text]);
    }
  });

  test('similar ids stay different jobs: case, spaces, composed letters, numbers', async (scene) => {
    const alike = ['a', 'A', 'a ', ' a', '\u00e9', 'e\u0301', 'x1', 'x01', '1.0', '1.00', '__proto__', 'constructor', 'null'];
    assert.deepEqual(await scene.add(...alike.map((id) => ({ id, data: JSON.stringify(id) }))), alike);
    const records = (await scene.store.jobs(scene.queue, alike)).jobs;
    assert.deepEqual(
      records.map((record) => record?.data),
      alike.map((id) => JSON.stringify(id)),
    );
    assert.deepEqual(await scene.order(), alike);
  });

  test('__proto__ and constructor are ordinary names and exist only when used', async (scene) => {
    const inherited = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'];
    assert.deepEqual(
      (await scene.store.jobs(scene.queue, inherited)).jobs,
      inherited.map(() => undefined),
    );
    for (const name of inherited) {
      if (scene.has('control')) {
        assert.deepEqual((await scene.store.logs(scene.queue, name, { start: 0, end: -1, asc: true })).logs, []);
      }
      assert.equal(await scene.lockOf(name), undefined);
      assert.deepEqual(await scene.store.locks(scene.queue, { session: name }), []);
      assert.equal((await scene.tryClaim(name)).sessionAlive, false);
      assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: name, acked: 0 }])).alive, false);
      const first = await scene.store.add(scene.queue, [newJob()], { caller: name, seq: 1 });
      assert.equal(only(first).status, 'added');
      assert.deepEqual(await scene.store.add(scene.queue, [newJob()], { caller: name, seq: 1 }), first);
    }
  });

  test('odd queue names name separate queues', async (scene) => {
    const queues = [
      "o'brien",
      '"q"',
      'a b',
      'A B',
      '__proto__',
      'constructor',
      'q%',
      'q_',
      'q*',
      '[q]',
      '../q',
      'q;--',
      'ü 漢 🧵',
      'q.q',
      'q/q',
    ];
    for (const name of queues) {
      const there = scene.at(`${name} ${scene.queue}`);
      await there.add({ id: 'x', data: JSON.stringify(name) });
      await there.claim(await there.session());
    }
    for (const name of queues) {
      const there = scene.at(`${name} ${scene.queue}`);
      const { counts } = await there.store.status(there.queue);
      assert.deepEqual([counts.active, counts.waiting], [1, 0], name);
      assert.equal((await there.job('x')).data, JSON.stringify(name));
    }
  });

  test('odd session ids, owners and their tokens survive', async (scene) => {
    for (const [index, text] of ODD_TEXTS.entries()) {
      const owner = { host: text, pid: index, name: text, instance: text };
      const { session, job } = await scene.running({}, { id: `${text} ${scene.queue}`, owner });
      const lock = await scene.lockOf(job.id);
      assert.deepEqual([lock?.session, lock?.owner, lock?.token], [session, owner, job.token]);
      await scene.finish(completed(job));
    }
  });

  test.needs('changing')('odd and empty reasons, stacktraces and revocations survive', async (scene) => {
    const session = await scene.session();
    for (const text of [...ODD_TEXTS, '', 'line\nbreak\ttab\r\n']) {
      await scene.add({});
      const job = await scene.claimOne(session);
      await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: text });
      const { jobId, token } = { jobId: job.id, token: (await scene.claimOne(session)).token };
      await scene.finish({ kind: 'failed', jobId, token, reason: text, stacktrace: JSON.stringify([text]), keep: {} });
      const record = await scene.job(jobId);
      assert.deepEqual([record.failedReason, record.stacktrace], [text, JSON.stringify([text])]);
    }
    const { notices } = only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]));
    assert.deepEqual(
      notices.map(({ reason }) => reason),
      [...ODD_TEXTS, '', 'line\nbreak\ttab\r\n'],
    );
  });

  test.needs('control')('empty and null values survive and are not taken for absent', async (scene) => {
    const { job } = await scene.running({ data: '""' });
    await scene.store.write(scene.queue, [{ jobId: job.id, kind: 'log', row: '' }]);
    await scene.finish({ kind: 'completed', jobId: job.id, token: job.token, value: 'null', keep: {} });
    const record = await scene.job(job.id);
    assert.deepEqual([record.data, record.returnvalue], ['""', 'null']);
    assert.deepEqual(await scene.store.logs(scene.queue, job.id, { start: 0, end: -1, asc: true }), { logs: [''], count: 1 });
  });

  test('JSON text survives unchanged: spaces, order of keys, big numbers, escapes', async (scene) => {
    const data = '{ "b":1,\n"a": 12345678901234567890.10, "z":"\\u0000\\ud800", "__proto__": {"x":1}, "b":2 }';
    assert.equal((await scene.job(await scene.addOne({ data }))).data, data);
  });

  test('a payload and a result of a megabyte survive', async (scene) => {
    const big = JSON.stringify('µ'.repeat(500_000) + 'x'.repeat(24_000));
    const { job } = await scene.running({ data: big });
    assert.equal(job.data, big);
    await scene.finish({ kind: 'completed', jobId: job.id, token: job.token, value: big, keep: {} });
    assert.equal((await scene.job(job.id)).returnvalue, big);
  });

  test('timestamps, priorities and delays survive at their limits', async (scene) => {
    const century = 100 * 365 * 24 * 3_600_000;
    await scene.add(
      { id: 'zero', timestamp: 0 },
      { id: 'far', timestamp: 8_640_000_000_000_000, priority: 2_097_152, delayMs: century },
    );
    const [zero, far] = [await scene.job('zero'), await scene.job('far')];
    assert.deepEqual([zero.timestamp, far.timestamp, far.priority, far.delay], [0, 8_640_000_000_000_000, 2_097_152, century]);
    assert.deepEqual(await scene.list('delayed'), ['far']);
  });

  test('changing a returned object changes nothing in the store', async (scene) => {
    const { job } = await scene.running();
    const token = job.token;
    Object.assign(job, { data: '"changed"', token: 'changed', state: 'failed' });
    const record = await scene.job(job.id);
    Object.assign(record, { data: '"changed"' });
    assert.equal((await scene.job(job.id)).data, '{}');
    assert.equal((await scene.lockOf(job.id))?.token, token);
    const recorded = await scene.events();
    Object.assign(nth(recorded, 0), { name: 'changed' });
    assert.notEqual(nth(await scene.events(), 0).name, 'changed');
  });

  test('changing a passed object later changes nothing in the store', async (scene) => {
    const job = newJob({ id: 'x' });
    const owner = { host: 'h', pid: 1, name: 'n', instance: 'i' };
    await scene.store.add(scene.queue, [job], scene.call('p'));
    await scene.session({ owner });
    Object.assign(job, { data: '"changed"', name: 'changed' });
    owner.name = 'changed';
    assert.deepEqual([(await scene.job('x')).data, (await scene.job('x')).name], ['{}', 'work']);
    assert.equal(only(await scene.store.sessions(scene.queue)).owner.name, 'n');
  });
}
