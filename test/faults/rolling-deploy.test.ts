// A rolling deploy: processes of the previous version, and of this one with one made-up step more in its tables, work on one queue. Each
// recovers what a killed process of the other version held, and no job is lost, run by two owners at once, or completed twice.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openStore, type Store } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../support/wait/until.js';
import { nextBuild } from '../support/processes/next-build.js';
import { previousBuild } from '../support/processes/previous-build.js';
import { emptyDatabase, shared } from '../support/servers/shared.js';
import { paced } from '../support/wait/pace.js';

const PROGRAM = fileURLToPath(new URL('fixtures/rolling.mjs', import.meta.url));
const QUEUE = 'rolling';
const OPTIONS = { concurrency: 4, lockDuration: 10_000, stalledInterval: 300, crashGraceMs: 300, maxStalledCount: 100 };
const RUN_MS = 40;
const PATIENCE_MS = 60_000;

const CONNECTIONS = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-rolling-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return `sqlite:${join(folder, 'jobs.db')}`;
  },
  postgres: async () => {
    const { url, drop } = await emptyDatabase();
    onTestFinished(drop);
    return url;
  },
  redis: async () => `${await shared('redis')}?prefix=rolling-${process.pid}-${Date.now()}`,
};

interface Run {
  id: string;
  from: number;
  /** Infinity while it runs. */
  to: number;
}

interface Message {
  event: string;
  at: number;
  id?: string;
  code?: string;
  message?: string;
}

class Member {
  readonly runs: Run[] = [];
  readonly completed: string[] = [];
  /** Events of the queue's log. */
  readonly heard: string[] = [];
  readonly complaints: string[] = [];
  refusal: string | undefined;
  ready = false;
  added = 0;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(entry: string, connection: string) {
    const plan = JSON.stringify({ entry, connection, queue: QUEUE, options: OPTIONS, runMs: RUN_MS });
    this.#child = fork(PROGRAM, [plan], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] });
    this.#ended = new Promise((resolve) => this.#child.once('close', () => resolve()));
    this.#child.on('message', (message) => this.#hear(message as Message));
    onTestFinished(() => this.kill());
  }

  get isRunning(): boolean {
    return this.runs.some(({ to }) => to === Number.POSITIVE_INFINITY);
  }

  async add(ids: string[]): Promise<void> {
    const before = this.added;
    this.#child.send({ command: 'add', ids });
    await until('the jobs to be added', () => this.added > before, PATIENCE_MS);
  }

  listen(): void {
    this.#child.send({ command: 'listen' });
  }

  async close(): Promise<void> {
    this.#child.send({ command: 'close' });
    await this.#ended;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    // Not after its end was noticed: on a busy machine others have recovered its jobs by then, and their runs would seem to overlap.
    const at = performance.timeOrigin + performance.now();
    await this.#ended;
    for (const run of this.runs) if (run.to === Number.POSITIVE_INFINITY) run.to = at;
  }

  #hear({ event, at, id = '', code, message }: Message): void {
    if (event === 'ready') this.ready = true;
    else if (event === 'refused') this.refusal = code ?? message;
    else if (event === 'added') this.added += 1;
    else if (event === 'start') this.runs.push({ id, from: at, to: Number.POSITIVE_INFINITY });
    else if (event === 'end') {
      const run = this.runs.findLast((one) => one.id === id);
      if (run !== undefined) run.to = at;
    } else if (event === 'completed') this.completed.push(id);
    else if (event === 'heard') this.heard.push(`${message} ${id}`);
    else this.complaints.push(`${event} ${code ?? ''} ${message ?? ''}`);
  }
}

const ids = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

const LOST = ids('lost', 2);

/** Jobs of a session of this process that ends as if by a crash. */
async function loseSome(store: Store): Promise<void> {
  await store.configure(QUEUE, { paused: true });
  const job = { name: 'work', data: '{"bytes":10}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  await store.add(
    QUEUE,
    LOST.map((id) => ({ ...job, id })),
    { caller: 'producer', seq: 1 },
  );
  const owner = { host: 'here', pid: process.pid, name: 'loser', instance: 'i' };
  await store.openSession({ queue: QUEUE, id: 'loser', owner, durationMs: PATIENCE_MS, maxStalls: 100, slots: 2 });
  expect((await store.claim(QUEUE, { session: 'loser', seq: 1, count: 2, jobIds: LOST })).jobs).toHaveLength(2);
  await store.closeSessions([{ queue: QUEUE, id: 'loser' }], 'crashed');
  await store.configure(QUEUE, { paused: false });
}

/** As a listener in a member hears them. */
async function heardIn(store: Store): Promise<string[]> {
  const heard: string[] = [];
  for (let after = 0, more = true; more; ) {
    const { events, last } = await store.events(QUEUE, after, 1000);
    for (const { id, name, jobId } of events)
      if (/^(waiting|active|stalled|completed)$/.test(name)) heard.push(`${id} ${name} ${jobId}`);
    more = events.length > 0;
    after = last;
  }
  return heard;
}

/** Pairs of runs of one job that overlap. */
function overlaps(members: Member[]): string[] {
  const runs = members.flatMap((member) => member.runs).sort((a, b) => a.from - b.from);
  const last = new Map<string, Run>();
  const found: string[] = [];
  for (const run of runs) {
    const before = last.get(run.id);
    if (before !== undefined && before.to > run.from) found.push(`${run.id}: ${before.to - run.from} ms`);
    if (before === undefined || before.to < run.to) last.set(run.id, run);
  }
  return found;
}

describe.each(Object.keys(CONNECTIONS) as (keyof typeof CONNECTIONS)[])('a rolling deploy on %s', (engine) => {
  test('processes of two versions share a queue through kills and hand-overs', { timeout: paced(180_000) }, async () => {
    const connection = await CONNECTIONS[engine]();
    const members: Member[] = [];
    const start = async (entry: string): Promise<Member> => {
      const member = new Member(entry, connection);
      members.push(member);
      await until('the process to be ready', () => member.ready || member.refusal !== undefined, PATIENCE_MS);
      return member;
    };
    const works = (member: Member, runs: number): Promise<unknown> =>
      until('the process to work', () => member.runs.length >= runs && member.isRunning, PATIENCE_MS);

    const old = [await start(previousBuild()), await start(previousBuild())] as const;
    await old[0].add(ids('old', 100));
    const fresh = await start(nextBuild());
    await fresh.add(ids('new', 100));
    for (const member of [...old, fresh]) await works(member, 5);

    // This version recovers jobs of the previous one, and the previous one those of this.
    await old[0].kill();
    await fresh.add(ids('new-again', 60));
    await works(fresh, 20);
    await fresh.kill();
    await old[1].add(ids('old-again', 60));
    await works(old[1], old[1].runs.length + 10);

    const last = await start(nextBuild());
    await last.add(ids('last', 40));
    await works(last, 5);
    const store = await openStore(connection);
    onTestFinished(() => store.close());

    // The previous version reads all that either has written down, and this one has written of a stall for sure.
    await loseSome(store);
    const written = await heardIn(store);
    expect(written.filter((event) => event.includes(' stalled lost-'))).toHaveLength(LOST.length);
    old[1].listen();
    await until('the events to be heard', () => old[1].heard.length >= written.length, PATIENCE_MS);
    expect(old[1].heard.slice(0, written.length)).toEqual(written);
    await old[1].close();
    await until(
      'all jobs to complete',
      async () => {
        const { counts } = await store.status(QUEUE);
        return counts.completed + counts.failed === 362;
      },
      PATIENCE_MS,
    );
    await last.close();
    const finished = members.flatMap((member) => member.completed);
    expect((await store.status(QUEUE)).counts).toMatchObject({ completed: 362, failed: 0, active: 0 });
    expect(finished.length).toBe(new Set(finished).size);
    expect(overlaps(members)).toEqual([]);
    expect(members.flatMap((member) => member.complaints)).toEqual([]);
  });

  test('a process of the previous version that starts later works, or is refused and changes nothing', {
    timeout: paced(120_000),
  }, async () => {
    const connection = await CONNECTIONS[engine]();
    const fresh = new Member(nextBuild(), connection);
    await until('the process to be ready', () => fresh.ready, PATIENCE_MS);
    await fresh.add(ids('new', 40));
    const late = new Member(previousBuild(), connection);
    await until('the late process to be ready or refused', () => late.ready || late.refusal !== undefined, PATIENCE_MS);
    if (late.ready) await late.add(ids('old', 20));
    else expect(late.refusal).toBe('STORE_NEWER');
    const all = late.ready ? 60 : 40;
    const store = await openStore(connection);
    onTestFinished(() => store.close());
    await until('all jobs to complete', async () => (await store.status(QUEUE)).counts.completed === all, PATIENCE_MS);
    expect(overlaps([fresh, late])).toEqual([]);
    expect(fresh.complaints).toEqual([]);
  });
});
