// Producers and workers in processes of their own on one server, for tests of what servers and networks do to them. Each keeps a diary;
// in the end the ledger (faults/ledger.ts) compares them with the store.
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Connection, HoldfastError, openStore, type Store } from 'holdfast';
import { onTestFinished } from 'vitest';
import { endOf } from './complaints.js';
import { Diary, type Note } from './diary.js';
import { audit, CompletionTail, type Ledger } from '../faults/ledger.js';
import { sleep, until } from '../wait/until.js';
import { inThisRun } from '../run/matrix.js';
import { startPostgres } from '../servers/postgres.js';
import { startRedis } from '../servers/redis.js';
import type { TestServer } from '../servers/server.js';
import type { ShiftedClock } from '../servers/wall-clock.js';

const SERVERS = {
  redis: () => startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } }),
  postgres: () => startPostgres(),
} satisfies Record<string, () => Promise<TestServer>>;

export type ServerEngine = keyof typeof SERVERS;
export const SERVER_ENGINES = inThisRun(Object.keys(SERVERS) as ServerEngine[]);

/** A durable server that the test may treat as it likes. */
export async function serverOf(engine: ServerEngine): Promise<TestServer> {
  const server = await SERVERS[engine]();
  onTestFinished(() => server.close());
  return server;
}

export type Clock = Pick<ShiftedClock, 'env' | 'execArgv'>;

export interface Plan {
  connection: Connection;
  options?: object;
  clock?: Clock;
  /** Of producers: between two adds. */
  paceMs?: number;
}

/** The lock thread of a process goes another way than the rest of it. */
export function twoWays(main: string, thread: string): Connection {
  return { module: fixture('server-store.mjs'), options: { main, thread } };
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../faults/fixtures/${name}`, import.meta.url));
}

export class Member {
  readonly role: 'producer' | 'worker';
  readonly diary: Diary;
  readonly child: ChildProcess;
  killed = false;
  /** Code or signal, and what it printed. */
  readonly ended: Promise<string>;

  constructor(role: 'producer' | 'worker', name: string, folder: string, { clock, ...plan }: Plan) {
    this.role = role;
    this.diary = new Diary(join(folder, `${name}.diary`));
    const told = { paceMs: 4, ...plan, name, diary: this.diary.file };
    const args = [...(clock?.execArgv ?? []), fixture(`server-${role}.mjs`), JSON.stringify(told)];
    const env = { ...process.env, ...clock?.env };
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    this.child = child;
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    this.ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(endOf(code, signal, stderr))));
  }

  notes(event: string): Note[] {
    return this.diary.notes(event);
  }

  /** What its `error` listener heard. */
  errors(): string[] {
    return this.notes('error').map(({ code, message }) => `${String(code)}: ${String(message)}`);
  }

  /** SIGKILL: nobody asks it to leave in good order any more. */
  async kill(): Promise<void> {
    this.killed = true;
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async ready(): Promise<void> {
    await until(`a ${this.role} to be ready`, () => this.notes('ready').length > 0);
  }
}

export class Crew {
  readonly members: Member[] = [];
  /** With the diaries, and room for what a test needs. */
  readonly folder: string;
  /** The store seen from beside, by a way that no test disturbs but with the server itself. */
  readonly store: Store;
  readonly #tail: CompletionTail;
  #over = false;
  #reading: Promise<void> = Promise.resolve();

  private constructor(store: Store, folder: string) {
    this.store = store;
    this.folder = folder;
    this.#tail = new CompletionTail(store);
    this.#reading = this.#follow();
  }

  /** Its processes are gone when the test ends; what they wrote stays only when it failed. */
  static async on(url: string): Promise<Crew> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-crew-'));
    const crew = new Crew(await openStore(url), folder);
    onTestFinished(async ({ task }) => {
      crew.#over = true;
      for (const { child } of crew.members) child.kill('SIGKILL');
      await Promise.all(crew.members.map(({ ended }) => ended));
      await crew.#reading;
      await crew.store.close();
      if (task.result?.state === 'fail') console.log(`The diaries are in ${folder}`);
      else rmSync(folder, { recursive: true, force: true });
    });
    return crew;
  }

  get workers(): Member[] {
    return this.members.filter(({ role }) => role === 'worker');
  }

  producer(plan: Plan): Member {
    return this.#hire('producer', plan);
  }

  worker(plan: Plan): Member {
    return this.#hire('worker', plan);
  }

  count(event: string): number {
    return this.members.reduce((sum, member) => sum + member.notes(event).length, 0);
  }

  /** For what a test does itself: as a process of the crew would write it down. */
  note(event: string, fields: object): void {
    const line = { event, at: Number(process.hrtime.bigint()) / 1e6, pid: process.pid, ...fields };
    appendFileSync(this.#ownDiary, `${JSON.stringify(line)}\n`);
  }

  /** Resolves when, from now on, so many more of these have been written down by all together. */
  async more(event: string, count: number, patienceMs?: number): Promise<void> {
    const enough = this.count(event) + count;
    await until(`${count} more "${event}"`, () => this.count(event) >= enough, patienceMs);
  }

  /** Producers stop, workers finish what there is, everybody leaves in good order. Answers what is to be said about it all. */
  async finish(patienceMs = 20_000): Promise<Ledger> {
    const complaints: string[] = [];
    await this.#dismiss('producer', complaints);
    let counts = {};
    const isDone = async (): Promise<boolean> => {
      const status = await this.store.status('work');
      counts = status.counts;
      return status.counts.waiting + status.counts.prioritized + status.counts.delayed + status.counts.active === 0;
    };
    await until('everything to be done', isDone, patienceMs).catch(() =>
      complaints.push(`not everything came to its end: ${JSON.stringify(counts)}`),
    );
    await this.#dismiss('worker', complaints);
    this.#over = true;
    await this.#reading;
    await this.#tail.read();
    const diaries = [this.#ownDiary, ...this.members.map(({ diary }) => diary.file)];
    const ledger = await audit(diaries, [], this.#tail, this.store);
    ledger.complaints.unshift(...complaints);
    return ledger;
  }

  get #ownDiary(): string {
    return join(this.folder, 'own.diary');
  }

  #hire(role: Member['role'], plan: Plan): Member {
    const member = new Member(role, `${role}-${this.members.length + 1}`, this.folder, plan);
    this.members.push(member);
    return member;
  }

  async #dismiss(role: Member['role'], complaints: string[]): Promise<void> {
    const leaving = this.members.filter((member) => member.role === role && !member.killed);
    for (const { child } of leaving) child.kill('SIGTERM');
    for (const { ended } of leaving) {
      const how = await ended;
      if (how !== 'code 0') complaints.push(`a ${role} that was asked to close ended with ${how}`);
    }
  }

  /** The event log is trimmed, so it is read all the time; while the server is away there is nothing to read. */
  async #follow(): Promise<void> {
    for (; !this.#over; await sleep(100)) {
      await this.#tail.read().catch((error: unknown) => {
        if (!(error instanceof HoldfastError && error.retryable)) throw error;
      });
    }
  }
}
