// What each verb of the contract costs with more items: five times as many cost about five times as much, on every store. Costs are
// processor time of this process and of the server, and the least of several rounds counts, so a busy machine hardly matters.
// HOLDFAST_TEST_TABLE=1 npm test -- test/stores/growth.test.ts prints the table.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ClaimedJob, NewJob } from '../../src/job/record.js';
import type { Outcome } from '../../src/job/outcome.js';
import type { Change, JobWrite, ScheduleChange, Selection, Store, Write } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { RedisStore } from '../../src/store/redis/index.js';
import { batchOf } from '../../src/store/capabilities.js';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import * as samples from '../../src/testing/conformance/samples.js';
import { FULL, inThisRun } from '../support/run/matrix.js';
import { startRedis } from '../support/servers/redis.js';
import { freshDatabase } from '../support/servers/shared.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const SIZES = FULL ? [10, 100, 1_000, 5_000] : [200, 1_000];
/** What is linear grows as the size does, what is quadratic 5 or 10 times as much. */
const MOST_TIMES = 2.5;
/** On average. */
const MOST_MS_OF_SCRIPT = 5;
/** Only what seems to bend is measured again. */
const ROUNDS = 6;
/** Below this, in ms, the clock of the processor and the rest of the process decide, and not the verb. */
const NOISE_MS = 5;

interface Opened {
  store: Store;
  /** The processor time of the server so far, in ms. */
  serverMs(): Promise<number>;
  /** The number of scripts that the server has run, if it does nothing else meanwhile. */
  scripts?(): Promise<number>;
}

const STORES = {
  memory: async (): Promise<Opened> => ({ store: new MemoryStore(), serverMs: async () => 0 }),
  sqlite: async (): Promise<Opened> => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-growth-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
    return { store: new SqliteStore({ path: join(folder, 'jobs.db') }), serverMs: async () => 0 };
  },
  redis: async (): Promise<Opened> => {
    const server = await startRedis();
    onTestFinished(() => server.close());
    const client = new Redis(server.url);
    onTestFinished(() => client.disconnect());
    const scripts = async (): Promise<number> =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    return { store: new RedisStore({ url: server.url }), serverMs: async () => timeOf([server.pid]), scripts };
  },
  postgres: async (): Promise<Opened> => {
    const { url, drop } = await freshDatabase();
    onTestFinished(drop);
    const client = new Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    const serverMs = async (): Promise<number> => {
      const { rows } = await client.query('SELECT pid FROM pg_stat_activity WHERE datname = current_database()');
      return timeOf(rows.map(({ pid }) => Number(pid)));
    };
    return { store: new PostgresStore({ url }), serverMs };
  },
} satisfies Record<string, () => Promise<Opened>>;

/** The processor time of all threads of some processes, in ms. */
function timeOf(pids: number[]): number {
  let ns = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    }
  }
  return ns / 1e6;
}

const HOUR = 3_600_000;

/** A queue of its own for one call of a verb. */
class Ground {
  readonly ids: string[];
  #seq = 0;

  constructor(
    readonly store: Store,
    readonly queue: string,
    readonly size: number,
  ) {
    this.ids = Array.from({ length: size }, (_, n) => `job-${n}`);
  }

  get call() {
    return { caller: `caller of ${this.queue}`, seq: ++this.#seq };
  }

  jobs(make: (n: number) => Partial<NewJob> = () => ({})): NewJob[] {
    return this.ids.map((id, n) => samples.newJob({ id, ...make(n) }));
  }

  async add(make?: (n: number) => Partial<NewJob>): Promise<void> {
    const replies = await inParts(this, this.jobs(make), (jobs) => this.store.add(this.queue, jobs, this.call));
    assert.deepEqual(
      replies.filter(({ status }) => status !== 'added'),
      [],
    );
  }

  async open(id = this.queue, slots = this.size): Promise<string> {
    await this.store.openSession(samples.newSession(this.queue, HOUR, { id, slots }));
    return id;
  }

  async claim(count = this.size, session = this.queue): Promise<ClaimedJob[]> {
    const jobs: ClaimedJob[] = [];
    while (jobs.length < count) {
      const left = Math.min(batchOf(this.store.capabilities), count - jobs.length);
      const reply = await this.store.claim(this.queue, { session, seq: ++this.#seq, count: left });
      if (reply.jobs.length === 0) break;
      jobs.push(...reply.jobs);
    }
    assert.equal(jobs.length, count);
    return jobs;
  }

  async started(make?: (n: number) => Partial<NewJob>): Promise<ClaimedJob[]> {
    await this.add(make);
    await this.open();
    return this.claim();
  }

  async settle(outcomes: Outcome[]): Promise<void> {
    const settle = async (part: Outcome[]) =>
      (await this.store.settle(this.queue, part, { caller: this.queue, seq: ++this.#seq })).results;
    const results = await inParts(this, outcomes, settle);
    assert.deepEqual(
      results.filter((status) => status !== 'done'),
      [],
    );
  }

  async finished(end: (job: ClaimedJob) => Outcome): Promise<void> {
    await this.settle((await this.started()).map(end));
  }

  async change(target: string[], change: Change): Promise<void> {
    const changed = await inParts(this, target, async (ids) => (await this.store.change(this.queue, ids, change)).changed);
    assert.equal(changed.length, this.size);
  }

  /** By selection. A call may take several steps, and leave more for the next. */
  async changeAll(list: Selection['lists'][number], change: Change): Promise<void> {
    let changed = 0;
    for (let more = true; more; ) {
      const reply = await this.store.change(this.queue, { lists: [list], limit: this.size }, change as { kind: 'promote' });
      changed += reply.changed.length;
      more = reply.more && changed < this.size;
    }
    assert.equal(changed, this.size);
  }

  async write(make: (id: string, n: number) => JobWrite, ids = this.ids): Promise<void> {
    const replies = await inParts(this, ids.map(make), (writes) => this.store.write(this.queue, writes));
    assert.deepEqual(
      replies.filter(({ status }) => status !== 'done'),
      [],
    );
  }

  async relay(): Promise<void> {
    for (let more = true; more; ) ({ more } = await this.store.relay(this.queue, 1_000));
  }

  /** Asks for the rest until `read` finds no more. */
  async readAll(read: (start: number) => Promise<number>): Promise<void> {
    let count = 0;
    for (let found = -1; found !== 0 && count < this.size; count += found) found = await read(count);
    assert.equal(count, this.size);
  }
}

/** Makes one call for each part of a list, as callers do: a store says how many items it takes at once. */
async function inParts<I, R>({ store }: Ground, items: readonly I[], call: (part: I[]) => Promise<R[]>): Promise<R[]> {
  const most = batchOf(store.capabilities);
  const replies: R[] = [];
  for (let first = 0; first < items.length; first += most) replies.push(...(await call(items.slice(first, first + most))));
  return replies;
}

type Prepare = (ground: Ground) => Promise<() => Promise<unknown>>;

const adding =
  (make: (n: number, ground: Ground) => Partial<NewJob>): Prepare =>
  async (ground) =>
  () =>
    ground.add((n) => make(n, ground));

const settling =
  (end: (job: ClaimedJob) => Outcome, make?: (n: number) => Partial<NewJob>): Prepare =>
  async (ground) => {
    const jobs = await ground.started(make);
    return () => ground.settle(jobs.map(end));
  };

const changing =
  (change: Change, before: (ground: Ground) => Promise<unknown>): Prepare =>
  async (ground) => {
    await before(ground);
    return () => ground.change(ground.ids, change);
  };

const selecting =
  (list: Selection['lists'][number], change: Change, before: (ground: Ground) => Promise<unknown>): Prepare =>
  async (ground) => {
    await before(ground);
    return () => ground.changeAll(list, change);
  };

const writing =
  (make: (id: string, n: number) => JobWrite): Prepare =>
  async (ground) => {
    await ground.add();
    return () => ground.write(make);
  };

const claiming =
  (make?: (n: number) => Partial<NewJob>, before?: (ground: Ground) => Promise<unknown>): Prepare =>
  async (ground) => {
    await ground.add(make);
    await ground.open();
    await before?.(ground);
    return () => ground.claim();
  };

const added = (ground: Ground): Promise<void> => ground.add();
const delayed = (ground: Ground): Promise<void> => ground.add(() => ({ delayMs: HOUR }));
const started = (ground: Ground): Promise<unknown> => ground.started();
const ended = (ground: Ground): Promise<void> => ground.finished((job) => samples.completed(job));
const broken = (ground: Ground): Promise<void> => ground.finished((job) => samples.failed(job));
const letters = async (ground: Ground): Promise<void> => {
  const jobs = await ground.started(() => ({ deadLetter: `${ground.queue} dead` }));
  await ground.settle(jobs.map((job) => samples.failed(job)));
  await ground.relay();
};
const slotOf = (ground: Ground, n: number, round: number) => ({
  at: 1_800_000_000_000 + round,
  dueInMs: HOUR,
  count: round,
  job: { ...samples.newJob(), id: `${ground.queue} ${n} ${round}` },
});
const scheduled = (ground: Ground): Promise<unknown> =>
  inParts(
    ground,
    ground.ids.map(
      (id, n): ScheduleChange => ({ id, version: 0, kind: 'put', spec: '{}', serial: false, next: slotOf(ground, n, 1) }),
    ),
    (changes) => ground.store.schedule(ground.queue, changes),
  );

/** The sessions of as many programs, each with one job. */
async function manySessions(ground: Ground, durationMs = HOUR): Promise<{ queue: string; id: string }[]> {
  const refs = ground.ids.map((id) => ({ queue: ground.queue, id: `${ground.queue} ${id}` }));
  for (const { id } of refs) await ground.store.openSession(samples.newSession(ground.queue, durationMs, { id, slots: 1 }));
  return refs;
}

const VERBS: Record<string, Prepare> = {
  'add: plain jobs': adding(() => ({})),
  'add: ids counted up': async (ground) => () =>
    inParts(
      ground,
      ground.ids.map(() => samples.newJob()),
      (jobs) => ground.store.add(ground.queue, jobs, ground.call),
    ),
  'add: priorities': adding((n) => ({ priority: n })),
  'add: delays': adding((n) => ({ delayMs: HOUR + n })),
  'add: to the front': adding(() => ({ lifo: true })),
  'add: one lock key': adding(() => ({ lockKey: 'key' })),
  'add: a lock key each': adding((n) => ({ lockKey: `key ${n}` })),
  'add: one group': adding(() => ({ group: 'group' })),
  'add: a group each': adding((n) => ({ group: `group ${n}` })),
  'add: a deduplication id each': adding((n) => ({ deduplication: { id: `own ${n}`, ttlMs: HOUR } })),
  'add: ids that exist': async (ground) => {
    await ground.add();
    return () => inParts(ground, ground.jobs(), (jobs) => ground.store.add(ground.queue, jobs, ground.call));
  },
  'add: one deduplication id': async (ground) => () =>
    inParts(
      ground,
      ground.jobs(() => ({ deduplication: { id: 'one' } })),
      (jobs) => ground.store.add(ground.queue, jobs, ground.call),
    ),
  'add: children of a parent': async (ground) => async () => {
    const parents = [{ queue: ground.queue, id: 'parent' }];
    const parent = samples.newJob({ id: 'parent', waitsForChildren: true });
    await ground.store.add(ground.queue, [parent, ...ground.jobs(() => ({ parents }))], ground.call);
  },
  'add: parents of a child': async (ground) => async () => {
    const child = samples.newJob({ id: 'child', parents: ground.ids.map((id) => ({ queue: ground.queue, id })) });
    await ground.store.add(ground.queue, [...ground.jobs(() => ({ waitsForChildren: true })), child], ground.call);
  },
  'add: a chain': async (ground) => async () => {
    const link = (n: number) => (n === 0 ? {} : { parents: [{ queue: ground.queue, id: ground.ids[n - 1] as string }] });
    await ground.store.add(
      ground.queue,
      ground.jobs((n) => ({ ...link(n), waitsForChildren: n < ground.size - 1 })),
      ground.call,
    );
  },
  'claim: plain jobs': claiming(),
  'claim: priorities': claiming((n) => ({ priority: n % 10 })),
  'claim: due jobs': claiming(
    () => ({ delayMs: 1 }),
    () => new Promise((resolve) => setTimeout(resolve, 5)),
  ),
  'claim: a lock key each': claiming((n) => ({ lockKey: `key ${n}` })),
  'claim: a group each': claiming((n) => ({ group: `group ${n}` })),
  'claim: one group': claiming(() => ({ group: 'group' })),
  'claim: by ids': async (ground) => {
    await ground.add();
    await ground.open();
    const { ids, queue: session } = ground;
    let seq = 0;
    const claim = async (jobIds: string[]) =>
      (await ground.store.claim(session, { session, count: jobIds.length, jobIds, seq: ++seq })).jobs;
    return () => inParts(ground, ids, claim);
  },
  'claim: one, behind taken keys': async (ground) => {
    await ground.add(() => ({ lockKey: 'key' }));
    await ground.open();
    await ground.claim(1);
    return async () => {
      const { jobs } = await ground.store.claim(ground.queue, { session: ground.queue, seq: 1_000_000, count: 1 });
      assert.deepEqual(jobs, []);
    };
  },
  'settle: completed': settling((job) => samples.completed(job)),
  'settle: completed, removed': settling((job) => samples.completed(job, { count: 0 })),
  'settle: completed, trimmed': settling((job) => samples.completed(job, { count: 10 })),
  'settle: failed': settling((job) => samples.failed(job)),
  'settle: retried': settling((job) => samples.retried(job)),
  'settle: retried later': settling((job) => samples.retried(job, HOUR)),
  'settle: delayed': settling((job) => samples.delayed(job, HOUR)),
  'settle: released': settling((job) => samples.released(job)),
  'settle: returned': settling((job) => samples.returned(job)),
  'settle: a lock key each': settling(
    (job) => samples.completed(job),
    (n) => ({ lockKey: `key ${n}` }),
  ),
  'settle: one group': settling(
    (job) => samples.completed(job),
    () => ({ group: 'group' }),
  ),
  'settle: letters': settling(
    (job) => samples.failed(job),
    () => ({ deadLetter: 'dead' }),
  ),
  'settle: children of a parent': async (ground) => {
    const parent = samples.newJob({ id: 'parent', waitsForChildren: true });
    const parents = [{ queue: ground.queue, id: 'parent' }];
    await ground.store.add(ground.queue, [parent, ...ground.jobs(() => ({ parents }))], ground.call);
    await ground.relay();
    await ground.open();
    const jobs = await ground.claim();
    return async () => {
      await ground.settle(jobs.map((job) => samples.completed(job)));
      await ground.relay();
    };
  },
  'change: retry': changing(samples.retryFrom('completed'), ended),
  'change: promote': changing({ kind: 'promote' }, delayed),
  'change: delay': changing({ kind: 'delay', delayMs: 2 * HOUR }, delayed),
  'change: priority': changing({ kind: 'priority', priority: 3, lifo: false }, added),
  'change: remove': changing({ kind: 'remove' }, added),
  'change: remove finished jobs': changing({ kind: 'remove' }, ended),
  'change: cancel': changing({ kind: 'cancel', reason: 'no' }, added),
  'change: cancel active jobs': changing({ kind: 'cancel', reason: 'no' }, started),
  'change: revoke': changing({ kind: 'revoke', reason: 'no' }, started),
  'change: retry by selection': selecting('failed', samples.retryFrom('failed'), broken),
  'change: promote by selection': selecting('delayed', { kind: 'promote' }, delayed),
  'change: remove by selection': selecting('waiting', { kind: 'remove' }, added),
  'change: cancel by selection': selecting('waiting', { kind: 'cancel', reason: 'no' }, added),
  'change: send letters': async (ground) => {
    await letters(ground);
    return async () => {
      const target = { lists: ['waiting' as const], limit: ground.size };
      for (let more = true; more; ) {
        ({ more } = await ground.store.change(`${ground.queue} dead`, target, { kind: 'send', to: ground.queue }));
      }
    };
  },
  'write: data': writing((jobId) => ({ kind: 'data', jobId, data: '{"n":1}' })),
  'write: progress': writing((jobId) => ({ kind: 'progress', jobId, progress: '1' })),
  'write: logs': writing((jobId) => ({ kind: 'log', jobId, row: 'row' })),
  'write: signals': writing((jobId) => ({ kind: 'step', jobId, name: 'signal', value: '1' })),
  'write: logs of one job': async (ground) => {
    await ground.add();
    return () => ground.write((_, n) => ({ kind: 'log', jobId: 'job-0', row: `row ${n}` }));
  },
  'write: steps of one job': async (ground) => {
    const [job] = await ground.started();
    const { id: jobId, token } = job as ClaimedJob;
    const names = ground.ids.slice(0, 1_000);
    return () => ground.write((name) => ({ kind: 'step', jobId, token, name, value: '1' }), names);
  },
  'write: events': async (ground) => {
    return () =>
      inParts(
        ground,
        ground.ids.map((id): Write => ({ kind: 'event', name: 'own', args: JSON.stringify({ id }) })),
        (writes) => ground.store.write(ground.queue, writes),
      );
  },
  'jobs: by ids': async (ground) => {
    await ground.add();
    return () => ground.readAll(async (start) => (await ground.store.jobs(ground.queue, ground.ids.slice(start))).jobs.length);
  },
  'jobs: a list': async (ground) => {
    await ground.add();
    const read = (start: number) => ground.store.jobs(ground.queue, { lists: ['waiting'], start, end: -1, asc: true });
    return () => ground.readAll(async (start) => (await read(start)).jobs.length);
  },
  'jobs: a list with keys': async (ground) => {
    await ground.add((n) => ({ lockKey: `key ${n % 7}` }));
    const read = (start: number) => ground.store.jobs(ground.queue, { lists: ['waiting'], start, end: -1, asc: true });
    return () => ground.readAll(async (start) => (await read(start)).jobs.length);
  },
  'jobs: a group': async (ground) => {
    await ground.add(() => ({ group: 'group' }));
    const read = (start: number) => ground.store.jobs(ground.queue, { group: 'group', start, end: -1, asc: true });
    return () => ground.readAll(async (start) => (await read(start)).jobs.length);
  },
  'logs: of one job': async (ground) => {
    await ground.add();
    await ground.write((_, n) => ({ kind: 'log', jobId: 'job-0', row: `row ${n}` }));
    return () =>
      ground.readAll(
        async (start) => (await ground.store.logs(ground.queue, 'job-0', { start, end: -1, asc: true })).logs.length,
      );
  },
  'events: read': async (ground) => {
    await ground.add();
    return async () => {
      let after = 0;
      for (let count = -1; count !== 0; ) {
        const { events, last } = await ground.store.events(ground.queue, after, 1_000);
        count = events.length;
        after = last;
      }
    };
  },
  'children: of a parent': async (ground) => {
    const parent = samples.newJob({ id: 'parent', waitsForChildren: true });
    const parents = [{ queue: ground.queue, id: 'parent' }];
    await ground.store.add(ground.queue, [parent, ...ground.jobs(() => ({ parents }))], ground.call);
    await ground.relay();
    return async () => {
      let count = 0;
      for (let after: string | undefined = ''; after !== undefined; ) {
        const query = { states: ['pending' as const], limit: 1_000, ...(after !== '' && { after }) };
        const { links, next } = await ground.store.children(ground.queue, 'parent', query);
        count += links.length;
        after = next;
      }
      assert.equal(count, ground.size);
    };
  },
  'locks: of jobs': async (ground) => {
    await ground.started();
    return () => inParts(ground, ground.ids, (jobIds) => ground.store.locks(ground.queue, { jobIds }));
  },
  'locks: of a session': async (ground) => {
    await ground.started();
    return () => ground.store.locks(ground.queue, { session: ground.queue });
  },
  'status: priorities': async (ground) => {
    await ground.add((n) => ({ priority: n }));
    const count = async (priorities: number[]) => (await ground.store.status(ground.queue, { priorities })).priorities ?? [];
    const all = ground.ids.map((_, n) => n);
    return () => inParts(ground, all, count);
  },
  'status: deduplication ids': async (ground) => {
    await ground.add((n) => ({ deduplication: { id: `own ${n}` } }));
    const ownersOf = async (deduplication: string[]) =>
      (await ground.store.status(ground.queue, { deduplication })).deduplication ?? [];
    const all = ground.ids.map((_, n) => `own ${n}`);
    return () => inParts(ground, all, ownersOf);
  },
  'status: groups': async (ground) => {
    await ground.add((n) => ({ group: `group ${n}` }));
    return () => ground.store.status(ground.queue, { groups: { limit: ground.size } });
  },
  'status: schedules': async (ground) => {
    await scheduled(ground);
    return () => ground.store.status(ground.queue, { schedules: { start: 0, end: -1, asc: true } });
  },
  'schedule: make': async (ground) => () => scheduled(ground),
  'schedule: replace': async (ground) => {
    const replies = (await scheduled(ground)) as { record: { version: number } }[];
    return () =>
      inParts(
        ground,
        ground.ids.map((id, n): ScheduleChange => {
          const version = replies[n]?.record.version as number;
          return { id, version, kind: 'put', spec: '{"n":2}', serial: false, next: slotOf(ground, n, 2) };
        }),
        (changes) => ground.store.schedule(ground.queue, changes),
      );
  },
  'extend: locks': async (ground) => {
    const jobs = await ground.started();
    return () =>
      inParts(
        ground,
        jobs.map(({ id, token }) => ({ jobId: id, token, durationMs: HOUR })),
        (extensions) => ground.store.extend(ground.queue, extensions),
      );
  },
  'acquire: locks': async (ground) => {
    const session = await ground.open();
    return () =>
      inParts(
        ground,
        ground.ids.map((name) => ({ name, session, token: `of ${name}`, keepPlaceMs: HOUR })),
        (wishes) => ground.store.acquire(ground.queue, wishes),
      );
  },
  'acquire: one line': async (ground) => {
    const session = await ground.open();
    return () =>
      inParts(
        ground,
        ground.ids.map((id) => ({ name: 'lock', session, token: `of ${id}`, keepPlaceMs: HOUR })),
        (wishes) => ground.store.acquire(ground.queue, wishes),
      );
  },
  'letGo: locks': async (ground) => {
    const session = await ground.open();
    const refs = ground.ids.map((name) => ({ name, session, token: `of ${name}`, keepPlaceMs: HOUR }));
    await inParts(ground, refs, (wishes) => ground.store.acquire(ground.queue, wishes));
    return () => inParts(ground, refs, (part) => ground.store.letGo(ground.queue, part));
  },
  'letGo: one line': async (ground) => {
    const session = await ground.open();
    const refs = ground.ids.map((id) => ({ name: 'lock', session, token: `of ${id}`, keepPlaceMs: HOUR }));
    await inParts(ground, refs, (wishes) => ground.store.acquire(ground.queue, wishes));
    return () => inParts(ground, refs, (part) => ground.store.letGo(ground.queue, part));
  },
  'renew: sessions': async (ground) => {
    const refs = await manySessions(ground);
    return () => ground.store.renew(refs.map((ref) => ({ ...ref, acked: 0 })));
  },
  'checkSessions: sessions': async (ground) => {
    const refs = await manySessions(ground);
    return () => ground.store.checkSessions(refs);
  },
  'sessions: read': async (ground) => {
    await manySessions(ground);
    return () => ground.store.sessions(ground.queue);
  },
  'closeSessions: sessions': async (ground) => {
    const refs = await manySessions(ground);
    return () => ground.store.closeSessions(refs, 'closed');
  },
  'closeSessions: jobs of one': async (ground) => {
    await ground.started();
    return () => ground.store.closeSessions([{ queue: ground.queue, id: ground.queue }], 'closed');
  },
  'sweep: jobs of one': async (ground) => {
    await ground.add();
    await ground.open();
    const jobs = await ground.claim();
    await inParts(
      ground,
      jobs.map(({ id, token }) => ({ jobId: id, token, durationMs: 0, alone: true as const })),
      (extensions) => ground.store.extend(ground.queue, extensions),
    );
    await until('the locks to expire', async () => {
      const [lock] = await ground.store.locks(ground.queue, { jobIds: ground.ids.slice(-1) });
      return (lock?.endsInMs ?? 0) < 0;
    });
    return async () => {
      let swept = 0;
      for (let more = true; more; ) {
        const reply = await ground.store.sweep(ground.queue, ground.size);
        swept += reply.stalled.length;
        ({ more } = reply);
      }
      assert.equal(swept, ground.size);
    };
  },
  'forget: deduplication ids': async (ground) => {
    await ground.add((n) => ({ deduplication: { id: `own ${n}` } }));
    const forget = async (deduplication: string[]) => [await ground.store.forget(ground.queue, { deduplication })];
    const all = ground.ids.map((_, n) => `own ${n}`);
    return () => inParts(ground, all, forget);
  },
  'forget: events': async (ground) => {
    await ground.add();
    return () => ground.store.forget(ground.queue, { events: 0 });
  },
  'forget: all': async (ground) => {
    await ground.add((n) => ({ deduplication: { id: `own ${n}` } }));
    await ground.change(ground.ids, { kind: 'remove' });
    return () => ground.store.forget(ground.queue, { all: true });
  },
};

describe.each(inThisRun(Object.keys(STORES) as (keyof typeof STORES)[]))('the verbs on %s', (engine) => {
  test('cost in proportion to their items', { timeout: paced(600_000) }, async () => {
    const { store, serverMs, scripts } = await STORES[engine]();
    await store.open();
    onTestFinished(() => store.close());
    const costOf = async (prepare: Prepare, size: number, name: string): Promise<{ ms: number; msOfScript: number }> => {
      const work = await prepare(new Ground(store, name, size)).catch((cause: unknown) => {
        throw new Error(`The preparation of ${name} failed.`, { cause });
      });
      const [run, own, server] = [await scripts?.(), process.cpuUsage(), await serverMs()];
      await work().catch((cause: unknown) => {
        throw new Error(`${name} failed.`, { cause });
      });
      const { user, system } = process.cpuUsage(own);
      const taken = (await serverMs()) - server;
      const msOfScript = run === undefined ? 0 : taken / Math.max(1, ((await scripts?.()) ?? 0) - run);
      return { ms: (user + system) / 1000 + taken, msOfScript };
    };
    const table: Record<string, number[]> = {};
    const bent: string[] = [];
    for (const [verb, prepare] of Object.entries(VERBS)) {
      const least = SIZES.map(() => Number.POSITIVE_INFINITY);
      let ofScript = Number.POSITIVE_INFINITY;
      const times = (n: number): number => (least[n] as number) / Math.max(NOISE_MS, least[n - 1] as number);
      const isBent = (): boolean =>
        ofScript > MOST_MS_OF_SCRIPT ||
        SIZES.some((size, n) => n > 0 && times(n) > MOST_TIMES * (size / (SIZES[n - 1] as number)));
      for (let round = 0; round < ROUNDS && (round === 0 || isBent()); round += 1) {
        let longest = 0;
        for (const [n, size] of SIZES.entries()) {
          const { ms, msOfScript } = await costOf(prepare, size, `${verb} ${size} ${round}`.replaceAll(':', ''));
          least[n] = Math.min(least[n] as number, ms);
          longest = Math.max(longest, msOfScript);
        }
        ofScript = Math.min(ofScript, longest);
      }
      const row = [...least, ofScript].map((ms) => Math.round(ms * 10) / 10);
      table[verb] = row;
      if (isBent()) bent.push(`${verb}: ${row.join(', ')} ms for ${SIZES.join(', ')} items and for a script`);
    }
    if (process.env['HOLDFAST_TEST_TABLE'] !== undefined) console.table(table);
    expect(bent).toEqual([]);
  });
});
