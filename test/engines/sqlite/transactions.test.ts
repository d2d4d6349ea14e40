// Calls inside a transaction that the user has open on a connection of their own: they take effect with the commit, or not at all.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../../src/handle/job.js';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import { FlowProducer } from '../../../src/queue/flow-producer.js';
import { Queue } from '../../../src/queue/queue.js';
import type { Store, Write } from '../../../src/store/contract/index.js';
import { Worker } from '../../../src/worker/worker.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { afterwards, newFile, newFolder, newJob, newSession, openStore, StoreProcess } from './support.js';

const Q = 'q';

interface Scene {
  file: string;
  store: Store;
  /** The user's connection. */
  db: Database.Database;
}

function connect(file: string, options?: Database.Options): Database.Database {
  const db = new Database(file, options);
  afterwards(() => db.close());
  return db;
}

async function start(): Promise<Scene> {
  const file = newFile();
  const store = await openStore({ path: file });
  await store.openSession(newSession({ queue: Q, durationMs: 600_000 }));
  const db = connect(file);
  db.exec('CREATE TABLE app_orders (id INTEGER)');
  return { file, store, db };
}

let calls = 0;
async function running(store: Store, session = 's'): Promise<ClaimedJob> {
  calls += 1;
  const id = `job-${calls}`;
  await store.add(Q, [newJob({ id })], { caller: id, seq: 1 });
  return (await store.claim(Q, { session, seq: calls, count: 1, jobIds: [id] })).jobs[0] as ClaimedJob;
}

const add = ({ store, db }: Scene, id?: string): Promise<unknown> => {
  calls += 1;
  return store.add(Q, [newJob(id === undefined ? {} : { id })], { caller: `adder-${calls}`, seq: 1 }, db);
};
const completed = ({ id: jobId, token }: ClaimedJob, count?: number): Outcome => {
  return { kind: 'completed', jobId, token, value: '7', keep: count === undefined ? {} : { count } };
};
const stepOf = ({ id, token }: ClaimedJob, value = '1'): Write => ({ kind: 'step', jobId: id, token, name: 'pay', value });
const orders = (db: Database.Database): unknown => db.prepare('SELECT count(*) FROM app_orders').pluck().get();

async function transact(db: Database.Database, work: () => Promise<unknown>): Promise<void> {
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec('INSERT INTO app_orders VALUES (1)');
    await work();
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

class Change extends Error {}
const fail = (): never => {
  throw new Change('no');
};

async function countsOf(store: Store): Promise<unknown[]> {
  const { waiting, active, completed: done } = (await store.status(Q)).counts;
  return [waiting, active, done];
}

async function refusal(call: Promise<unknown>): Promise<{ code: string; option: string; message: string }> {
  return call.then(
    () => expect.fail('it was accepted'),
    (error: { code: string; option: string; message: string }) => error,
  );
}

describe('a commit on the connection of a user of SQLite', () => {
  it('adds jobs, and their events, together with the writes of the user', async () => {
    const scene = await start();
    const { store, db } = scene;
    await transact(db, async () => {
      expect(await add(scene)).toMatchObject([{ id: '1', status: 'added' }]);
      expect(await add(scene, 'a')).toMatchObject([{ status: 'added' }]);
      expect(await add(scene, 'a')).toMatchObject([{ status: 'duplicate' }]);
      expect(await countsOf(store), 'before the commit').toEqual([0, 0, 0]);
    });
    expect([await countsOf(store), orders(db)]).toEqual([[2, 0, 0], 1]);
    const { events } = await store.events(Q, 0, 10);
    expect(events.map(({ name, jobId }) => `${name} ${jobId}`)).toEqual([
      'added 1',
      'waiting 1',
      'added a',
      'waiting a',
      'duplicated a',
    ]);
  });

  it('completes a job, and the completion that a worker repeats is recognised', async () => {
    const { store, db } = await start();
    const job = await running(store);
    await transact(db, async () => {
      const { results } = await store.settle(Q, [completed(job)], undefined, undefined, db);
      expect(results).toEqual(['done']);
      expect(await countsOf(store), 'before the commit').toEqual([0, 1, 0]);
    });
    expect([await countsOf(store), orders(db)]).toEqual([[0, 0, 1], 1]);
    expect((await store.settle(Q, [completed(job)], { caller: 's', seq: (calls += 1) })).results).toEqual(['done']);
  });

  it('records a step', async () => {
    const { store, db } = await start();
    const job = await running(store);
    await transact(db, async () => {
      expect(await store.write(Q, [stepOf(job)], db)).toEqual([{ status: 'done', value: '1' }]);
      expect((await store.jobs(Q, { stepsOf: job.id })).steps).toEqual([]);
    });
    expect((await store.jobs(Q, { stepsOf: job.id })).steps).toEqual([{ name: 'pay', value: '1' }]);
    expect(await store.write(Q, [stepOf(job, '2')])).toEqual([{ status: 'done', value: '1' }]);
  });

  it('is seen by calls of the store right after it, whatever the store has in memory', async () => {
    const scene = await start();
    const { store, db } = scene;
    for (let round = 0; round < 20; round += 1) {
      // The store keeps the row of the queue after this commit.
      const job = await running(store);
      await transact(db, async () => {
        await store.settle(Q, [completed(job)], undefined, undefined, db);
        await add(scene, `in-${round}`);
      });
      const { jobs } = await store.claim(Q, { session: 's', seq: (calls += 1), count: 5 });
      expect(jobs.map(({ id }) => id)).toEqual([`in-${round}`]);
      expect((jobs[0] as ClaimedJob).fence).toBeGreaterThan(job.fence);
      await store.settle(
        Q,
        jobs.map((one) => completed(one)),
      );
      expect(await countsOf(store)).toEqual([0, 0, 2 * (round + 1)]);
    }
    const { events } = await store.events(Q, 0, 1000);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
  });

  it('keeps what a job entails: keys, groups, deduplication, retention and parents', async () => {
    const { store, db } = await start();
    await store.configure(Q, { groups: { maxActive: 1 } });
    const jobs = [
      ...['k1', 'k2'].map((id) => newJob({ id, lockKey: 'k' })),
      ...['g1', 'g2'].map((id) => newJob({ id, group: 'g' })),
      newJob({ id: 'd1', deduplication: { id: 'd' } }),
      newJob({ id: 'p', waitsForChildren: true }),
      newJob({ id: 'c', parents: [{ queue: Q, id: 'p' }] }),
    ];
    await transact(db, () => store.add(Q, jobs, { caller: 'p', seq: 1 }, db));
    const claim = async (): Promise<ClaimedJob[]> => (await store.claim(Q, { session: 's', seq: (calls += 1), count: 10 })).jobs;
    const first = await claim();
    expect(first.map(({ id }) => id).sort()).toEqual(['c', 'd1', 'g1', 'k1']);
    await transact(db, () =>
      store.settle(
        Q,
        first.map((job) => completed(job, 0)),
        undefined,
        undefined,
        db,
      ),
    );
    expect((await claim()).map(({ id }) => id).sort()).toEqual(['g2', 'k2', 'p']);
    const again = await store.add(Q, [newJob({ id: 'd2', deduplication: { id: 'd' } })], { caller: 'p2', seq: 1 });
    expect(again).toEqual([{ id: 'd2', status: 'added' }]);
    expect(await countsOf(store)).toEqual([1, 3, 0]);
  });
});

describe('a rollback on the connection of a user of SQLite', () => {
  it('leaves nothing of the calls: no job, no event, no id, no completion, no step', async () => {
    const scene = await start();
    const { store, db } = scene;
    const job = await running(store);
    const { last } = await store.events(Q, undefined, 10);
    const rolledBack = transact(db, async () => {
      await add(scene);
      await store.write(Q, [stepOf(job)], db);
      await store.settle(Q, [completed(job)], undefined, undefined, db);
      fail();
    });
    await expect(rolledBack).rejects.toThrow(Change);
    expect([await countsOf(store), orders(db)]).toEqual([[0, 1, 0], 0]);
    expect((await store.events(Q, last, 10)).events).toEqual([]);
    expect((await store.jobs(Q, { stepsOf: job.id })).steps).toEqual([]);
    expect(await store.add(Q, [newJob()], { caller: 'other', seq: 1 })).toMatchObject([{ id: '1' }]);
    expect((await store.settle(Q, [completed(job)])).results).toEqual(['done']);
  });

  it('of a savepoint leaves what came before and after it', async () => {
    const scene = await start();
    const { store, db } = scene;
    await transact(db, async () => {
      await add(scene, 'before');
      db.exec('SAVEPOINT mine');
      await add(scene, 'inside');
      db.exec('ROLLBACK TO mine');
      await add(scene, 'after');
    });
    const { jobs } = await store.jobs(Q, ['before', 'inside', 'after']);
    expect(jobs.map((job) => job?.id)).toEqual(['before', undefined, 'after']);
    expect((await store.status(Q)).counts.waiting).toBe(2);
  });
});

describe('a stale token in a transaction of a user of SQLite', () => {
  it('completes nothing and records no step', async () => {
    const { store, db } = await start();
    const { id: jobId, token, ...rest } = await running(store);
    const job = { id: jobId, token, ...rest } as ClaimedJob;
    await store.settle(Q, [{ kind: 'release', jobId, token }]);
    await transact(db, async () => {
      expect((await store.settle(Q, [completed(job)], undefined, undefined, db)).results).toEqual(['lost']);
      expect(await store.write(Q, [stepOf(job)], db)).toEqual([{ status: 'lost' }]);
    });
    expect(await countsOf(store)).toEqual([1, 0, 0]);
  });
});

describe('the option transaction on SQLite', () => {
  const wrong: [name: string, make: (scene: Scene) => object, text: string][] = [
    ['a connection without a transaction', ({ file }) => connect(file), 'No transaction is open'],
    ['a closed connection', ({ file }) => new Database(file).close(), 'No transaction is open'],
    [
      'a connection to another file',
      () => connect(path.join(newFolder(), 'other.db')).exec('CREATE TABLE t (a); BEGIN IMMEDIATE'),
      'Open the file of the store',
    ],
    ['a database in memory', () => connect(':memory:').exec('BEGIN'), 'is no file'],
    [
      'a connection whose main database is another file and that has attached the store',
      ({ file }) => connect(':memory:').exec(`ATTACH '${file}' AS queue; BEGIN`),
      'is no file',
    ],
    [
      'a hard link to the file, for which SQLite would use another log',
      ({ file }) => {
        fs.linkSync(file, `${file}-link`);
        return connect(`${file}-link`).exec('BEGIN');
      },
      'Open the file of the store',
    ],
    [
      'a connection with a temporary table that hides one of the store',
      ({ file }) => connect(file).exec('CREATE TEMP TABLE jobs (a); BEGIN'),
      'The temporary table jobs',
    ],
    ['a connection that may only read', ({ file }) => connect(file, { readonly: true }).exec('BEGIN'), 'may only read'],
    [
      'an object of another package',
      () => ({ isTransaction: true, prepare: () => ({}), exec: () => undefined }),
      'same installed copy',
    ],
  ];
  for (const [name, make, text] of wrong) {
    it(`refuses ${name}, and writes nothing`, async () => {
      const scene = await start();
      const job = await running(scene.store);
      const db = make(scene);
      const { store } = scene;
      for (const call of [
        add({ ...scene, db: db as Database.Database }),
        store.settle(Q, [completed(job)], undefined, undefined, db),
        store.write(Q, [stepOf(job)], db),
      ]) {
        const error = await refusal(call);
        expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'transaction' });
        expect(error.message).toContain(text);
      }
      if ('exec' in db && 'inTransaction' in db && db.inTransaction === true) (db as Database.Database).exec('COMMIT');
      expect(await countsOf(store)).toEqual([0, 1, 0]);
    });
  }

  it('accepts a connection that was opened through a symbolic link', async () => {
    const scene = await start();
    fs.symlinkSync(scene.file, `${scene.file}-link`);
    const db = connect(`${scene.file}-link`);
    await transact(db, () => add({ ...scene, db }));
    expect(await countsOf(scene.store)).toEqual([1, 0, 0]);
  });

  it('accepts a connection with settings of its own', async () => {
    const scene = await start();
    const { store, db } = scene;
    db.defaultSafeIntegers(true);
    for (const pragma of [
      'foreign_keys = ON',
      'recursive_triggers = ON',
      'case_sensitive_like = ON',
      'reverse_unordered_selects = ON',
    ])
      db.pragma(pragma);
    const job = await running(store);
    await transact(db, async () => {
      expect(await add(scene)).toEqual([{ id: '1', status: 'added' }]);
      await store.write(Q, [stepOf(job)], db);
      await store.settle(Q, [completed(job)], undefined, undefined, db);
    });
    expect(await countsOf(store)).toEqual([1, 0, 1]);
  });

  it('reports a transaction that has read before another connection wrote, says what to do, and leaves the transaction usable', async () => {
    const scene = await start();
    const { store, db } = scene;
    db.exec('BEGIN');
    expect(orders(db)).toBe(0);
    await running(store);
    const error = await refusal(add(scene));
    expect(error).toMatchObject({ code: 'STORE_BUSY', retryable: true });
    expect(error.message).toContain('BEGIN IMMEDIATE');
    expect(db.inTransaction).toBe(true);
    db.exec('COMMIT');
    await transact(db, () => add(scene));
    expect(await countsOf(store)).toEqual([1, 1, 0]);
  });

  it('undoes a call that fails half-way, and the transaction can go on', async () => {
    const scene = await start();
    const { store, db } = scene;
    db.exec("CREATE TEMP TRIGGER refuse BEFORE INSERT ON jobs WHEN new.id = 'bad' BEGIN SELECT raise(ABORT, 'refused'); END");
    await transact(db, async () => {
      const both = store.add(Q, [newJob({ id: 'good' }), newJob({ id: 'bad' })], { caller: 'p', seq: 1 }, db);
      expect((await refusal(both)).message).toContain('refused');
      await add(scene, 'later');
    });
    expect((await store.jobs(Q, ['good', 'later'])).jobs.map((job) => job?.id)).toEqual([undefined, 'later']);
    expect(await countsOf(store)).toEqual([1, 0, 0]);
  });

  it('never waits for the connection of the store: a call returns while the store itself waits for the transaction', async () => {
    const scene = await start();
    const { store, db } = scene;
    const job = await running(store);
    let isWritten = false;
    const own = await (async () => {
      db.exec('BEGIN IMMEDIATE');
      const writing = store.write(Q, [{ kind: 'data', jobId: job.id, data: '1' }]).then(() => (isWritten = true));
      await add(scene, 'a');
      await store.settle(Q, [completed(job)], undefined, undefined, db);
      expect(isWritten).toBe(false);
      db.exec('COMMIT');
      return { writing };
    })();
    await own.writing;
    expect(await countsOf(store)).toEqual([1, 0, 1]);
  });

  it('is refused after the file was replaced', async () => {
    const scene = await start();
    const { store, db, file } = scene;
    db.exec('BEGIN IMMEDIATE');
    fs.renameSync(file, `${file}-moved`);
    expect((await refusal(add(scene))).code).toMatch(/STORE_GONE|INVALID_OPTION/);
    db.exec('ROLLBACK');
    fs.renameSync(`${file}-moved`, file);
    await store.close();
  });

  it('is refused with the SQLite that the package brings, with what to install', () => {
    const program = fileURLToPath(new URL('prebuilt-transaction.mjs', import.meta.url));
    const { stdout, stderr } = spawnSync(process.execPath, [program, newFile()], {
      encoding: 'utf8',
      env: { ...process.env, HOLDFAST_SQLITE_DRIVER: '@photostructure/sqlite' },
    });
    expect(stderr).toBe('');
    expect(stdout).toContain('INVALID_OPTION');
    expect(stdout).toContain('Install better-sqlite3 12');
  });
});

describe('workers on SQLite', () => {
  it('in this process and in another one wake after the commit of a user, and not before', async () => {
    const scene = await start();
    const { store, db, file } = scene;
    let woken = 0;
    afterwards(store.watch(Q, () => (woken += 1)));
    const other = await StoreProcess.start(file);
    await other.call('open');
    const waiting = other.call<number>('waking', Q);
    // The other process has said that it watches when this call returns.
    await other.call('status', Q);
    await transact(db, async () => {
      await add(scene, 'a');
      expect(woken).toBe(0);
    });
    const committed = performance.timeOrigin + performance.now();
    await until('this process to wake', () => woken > 0);
    expect((await waiting) - committed).toBeLessThan(paced(2000));
  });

  interface Crew extends Scene {
    queue: Queue;
    work(handler: (job: Job) => Promise<unknown>, options?: object): Worker;
    errors: Error[];
    ended(job: Job): Promise<Job>;
  }

  async function crew(): Promise<Crew> {
    const scene = await start();
    const connection = `sqlite:${scene.file}`;
    const queue = new Queue(Q, { connection });
    afterwards(() => queue.close());
    const errors: Error[] = [];
    const work: Crew['work'] = (handler, options = {}) => {
      const worker = new Worker(Q, handler, { connection, drainDelay: 1, ...options });
      worker.on('error', (error) => errors.push(error));
      afterwards(() => worker.close());
      return worker;
    };
    const ended = (job: Job): Promise<Job> =>
      until('the job to end', async () => {
        const now = await queue.getJob(job.id);
        return now?.finishedOn === undefined ? undefined : now;
      });
    return { ...scene, queue, work, errors, ended };
  }

  it('run a job that was added in a transaction after its commit, and complete it in one', async () => {
    const { queue, work, db, ended, errors } = await crew();
    const heard: unknown[] = [];
    work(async (job) => {
      await transact(db, () => job.complete({ order: 7 }, { transaction: db }));
      return 'ignored';
    }).on('completed', (_job, result) => heard.push(result));
    let job: Job | undefined;
    await transact(db, async () => {
      job = await queue.add('order', {}, { transaction: db });
    });
    const { returnvalue, attemptsMade } = await ended(job as Job);
    expect([returnvalue, attemptsMade, orders(db)]).toEqual([{ order: 7 }, 1, 2]);
    await until('the worker to say so', () => heard.length > 0);
    expect([heard, errors]).toEqual([[{ order: 7 }], []]);
  });

  it('fail a run that ends normally although its transaction has rolled back', async () => {
    const { queue, work, db, ended } = await crew();
    work(async (job) => {
      db.exec('BEGIN IMMEDIATE');
      await job.complete(7, { transaction: db });
      db.exec('ROLLBACK');
      return 'all is well';
    });
    const { failedReason, returnvalue } = await ended(await queue.add('order', {}));
    expect([failedReason, returnvalue]).toEqual([expect.stringContaining('has not committed'), null]);
  });

  it('refuse a step that ends normally although its transaction has rolled back', async () => {
    const { queue, work, db, ended } = await crew();
    const codes: unknown[] = [];
    work(async (job) => {
      const step = job.step('book', async ({ commit }) => {
        db.exec('BEGIN IMMEDIATE');
        await commit('booked', { transaction: db });
        db.exec('ROLLBACK');
      });
      await step.catch((error: { code: unknown }) => codes.push(error.code));
    });
    const job = await ended(await queue.add('order', {}));
    expect([codes, await job.steps()]).toEqual([['NOT_COMMITTED'], []]);
  });

  it('refuse a completion without a transaction, and a second one in the same run', async () => {
    const { queue, work, db, ended } = await crew();
    const codes: unknown[] = [];
    const refused = (error: { code: unknown }): void => void codes.push(error.code);
    work(async (job) => {
      await job.complete(7, { transaction: undefined } as never).catch(refused);
      await transact(db, async () => {
        await job.complete(7, { transaction: db });
        await job.complete(8, { transaction: db }).catch(refused);
      });
    });
    const { returnvalue } = await ended(await queue.add('order', {}));
    expect([codes, returnvalue]).toEqual([['INVALID_OPTION', 'JOB_STATE'], 7]);
  });

  it('report a job as completed that its retention has removed with the commit', async () => {
    const { queue, work, db, errors } = await crew();
    const heard: unknown[] = [];
    const worker = work((job) => transact(db, () => job.complete(7, { transaction: db })));
    worker.on('completed', (_job, result) => heard.push(result));
    const { id } = await queue.add('order', {}, { removeOnComplete: true });
    await until('the worker to say so', () => heard.length > 0);
    expect([heard, errors, await queue.getJob(id), orders(db)]).toEqual([[7], [], undefined, 1]);
  });

  it('keep a completion that was committed when the handler throws afterwards', async () => {
    const { queue, work, db, ended, errors } = await crew();
    const heard: unknown[] = [];
    const worker = work(async (job) => {
      await transact(db, () => job.complete(7, { transaction: db }));
      fail();
    });
    worker.on('completed', (_job, result) => heard.push(result));
    const job = await queue.add('order', {}, { attempts: 3 });
    const { attemptsMade, returnvalue } = await ended(job);
    await until('the worker to say so', () => heard.length > 0 && errors.length > 0);
    expect([attemptsMade, returnvalue, orders(db), heard]).toEqual([1, 7, 1, [7]]);
    expect(errors[0]).toBeInstanceOf(Change);
  });

  it('run a job again whose transaction was rolled back', async () => {
    const { queue, work, db, ended } = await crew();
    let runs = 0;
    work((job) =>
      transact(db, async () => {
        await job.complete((runs += 1), { transaction: db });
        if (runs < 3) fail();
      }),
    );
    const { returnvalue, attemptsMade } = await ended(await queue.add('order', {}, { attempts: 5 }));
    expect([returnvalue, attemptsMade, orders(db), runs]).toEqual([3, 3, 1, 3]);
  });

  it('get LOCK_LOST from complete and from the commit of a step after their lock was taken away, so the transaction rolls back', async () => {
    const { queue, work, db, store, ended } = await crew();
    const codes: unknown[] = [];
    let runs = 0;
    work(async (job) => {
      runs += 1;
      if (runs === 1) {
        await store.change(Q, [job.id], { kind: 'revoke', reason: 'operator' });
        const complete = transact(db, () => job.complete(1, { transaction: db }));
        codes.push(await complete.catch(({ code }: { code: string }) => code));
        const step = job.step('pay', ({ commit }) => transact(db, () => commit(1, { transaction: db })));
        codes.push(await step.catch(({ code }: { code: string }) => code));
        return 'late';
      }
      return 'second';
    });
    const { returnvalue } = await ended(await queue.add('order', {}, { attempts: 5 }));
    expect([codes, returnvalue, orders(db)]).toEqual([['LOCK_LOST', 'LOCK_LOST'], 'second', 0]);
  });

  it('do not repeat a step that was committed with the rows of the user', async () => {
    const { queue, work, db, ended } = await crew();
    let runs = 0;
    const seen: unknown[] = [];
    work(async (job) => {
      runs += 1;
      const paid = await job.step('pay', ({ commit }) => transact(db, () => commit({ run: runs }, { transaction: db })));
      seen.push(paid);
      if (runs < 3) fail();
      return paid;
    });
    const { returnvalue } = await ended(await queue.add('order', {}, { attempts: 5 }));
    expect([returnvalue, orders(db), runs]).toEqual([{ run: 1 }, 1, 3]);
    expect(seen).toEqual([{ run: 1 }, { run: 1 }, { run: 1 }]);
  });

  it('run a flow after the commit that added it', async () => {
    const { work, db, file, ended } = await crew();
    const flow = new FlowProducer({ connection: `sqlite:${file}` });
    afterwards(() => flow.close());
    work(async (job) => job.name);
    let parent: Job | undefined;
    await transact(db, async () => {
      const tree = { name: 'parent', queueName: Q, children: [{ name: 'child', queueName: Q }] };
      ({ job: parent } = (await flow.add(tree, { transaction: db })) as { job: Job });
    });
    expect((await ended(parent as Job)).returnvalue).toBe('parent');
  });
});

it('the tables of the store have no underscore in their names, so a user’s with one never meet them', async () => {
  const { db } = await start();
  const names = db
    .prepare("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' AND name NOT LIKE 'app@_%' ESCAPE '@'")
    .pluck()
    .all();
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => String(name).includes('_'))).toEqual([]);
});
