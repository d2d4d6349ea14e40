// A server that belongs to a test: a process with a free port and a folder of its own, which the test may kill, stop, resume and
// restart. redis.ts and postgres.ts say what to run; tests get it from there.
// It must never outlive the process that started it, however that one ends: guard.sh sees to it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { paced } from '../wait/pace.js';
import { freePort } from './free-port.js';
import { childrenOf, hasEnded, isStopped, signal } from './processes.js';

const LOOK_MS = 10;
const PATIENCE_MS = paced(20_000);
const GUARD = fileURLToPath(new URL('guard.sh', import.meta.url));

export interface Running {
  folder: string;
  port: number;
  pid: number;
}

export interface ServerPlan {
  name: string;
  command: string;
  args(at: { folder: string; port: number }): string[];
  url(port: number): string;
  /** Asks the server; it must be this one that answers, not somebody else's that has taken the port. */
  isReady(running: Running): Promise<boolean>;
  /** Ends it in good order, and at once without leaving anything behind. */
  signals: { restart: NodeJS.Signals; close: NodeJS.Signals };
  /** Where its folder is made, when not among temporary files. */
  parent?: string | undefined;
  /** Fills the folder before the first start. */
  prepare?(folder: string): Promise<void>;
  /** Whom it runs as, when not as we do. */
  user?: { uid: number; gid: number } | undefined;
}

export class TestServer {
  readonly folder: string;
  readonly #plan: ServerPlan;
  readonly #guard: ChildProcess;
  #port = 0;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  private constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.folder = mkdtempSync(join(plan.parent ?? tmpdir(), `holdfast-${plan.name}-`));
    if (plan.user !== undefined) chownSync(this.folder, plan.user.uid, plan.user.gid);
    // Detached, as the server: Ctrl-C in a terminal is for the tests, which then close in their own order.
    const args = [GUARD, this.folder, plan.signals.close.replace('SIG', '')];
    this.#guard = spawn('sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.#guard.stdin?.on('error', () => undefined);
  }

  static async start(plan: ServerPlan): Promise<TestServer> {
    const server = new TestServer(plan);
    try {
      await plan.prepare?.(server.folder);
      await server.#startOnFreePort();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return this.#plan.url(this.#port);
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined || !this.isRunning) throw new Error(`${this.#plan.name} does not run: restart() it first.`);
    return pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** All that it has logged. */
  get log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  /** SIGKILL, for its children too: a power cut. The port is free and nothing runs when it comes back. */
  async kill(): Promise<void> {
    const family = await this.#stopFamily();
    for (const pid of family) signal(pid, 'SIGKILL');
    await this.#exited;
    await this.#until('killed', () => family.every(hasEnded));
  }

  /** SIGSTOP, for its children too: connections stay open and nobody answers. */
  async stop(): Promise<void> {
    await this.#stopFamily();
  }

  resume(): void {
    for (const pid of [...childrenOf(this.pid), this.pid]) signal(pid, 'SIGCONT');
  }

  /** Shuts it down in good order if it runs, and starts it again on the same port with what it had kept. */
  async restart(): Promise<void> {
    if (this.isRunning) {
      this.resume();
      signal(this.pid, this.#plan.signals.restart);
      await this.#exited;
    }
    await this.#launch(this.#port);
  }

  /** Ends it in whatever state it is and removes its folder. May be called again. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const gone = once(this.#guard, 'close');
    this.#guard.stdin?.end();
    await gone;
    await this.#exited;
  }

  async #startOnFreePort(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const port = await freePort();
      try {
        await this.#launch(port);
        this.#port = port;
        return;
      } catch (error) {
        // Between the look and the start, somebody else may have taken it.
        if (attempt === 5 || !/address already in use/i.test(String(error))) throw error;
      }
    }
  }

  async #launch(port: number): Promise<void> {
    const { command, args, user, name, isReady } = this.#plan;
    const { folder } = this;
    const log = openSync(this.#logFile, 'a');
    const child = spawn(command, args({ folder, port }), { cwd: folder, stdio: ['ignore', log, log], detached: true, ...user });
    closeSync(log);
    this.#child = child;
    // An `error` (it cannot be run at all) comes without an exit.
    this.#exited = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
    const { pid } = child;
    if (pid === undefined) throw new Error(`${command} cannot be run.`);
    this.#guard.stdin?.write(`${pid}\n`);
    // The kernel may give the number to another process now.
    void this.#exited.then(() => this.#guard.stdin?.writable && this.#guard.stdin.write('\n'));
    await this.#until('ready', () => {
      if (!this.isRunning) throw new Error(`${name} ended while it started:\n${this.log.split('\n').slice(-20).join('\n')}`);
      return isReady({ folder, port, pid });
    });
  }

  /** Parent first: once it is stopped, it makes no more children that could be missed. */
  async #stopFamily(): Promise<number[]> {
    const { pid } = this;
    signal(pid, 'SIGSTOP');
    await this.#until('stopped', () => isStopped(pid));
    const children = childrenOf(pid);
    for (const child of children) signal(child, 'SIGSTOP');
    await this.#until('stopped', () => children.every((child) => isStopped(child) || hasEnded(child)));
    return [pid, ...children];
  }

  async #until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await look())) {
      if (performance.now() > deadline)
        throw new Error(`${this.#plan.name} is not ${what} after ${PATIENCE_MS} ms:\n${this.log}`);
      await sleep(LOOK_MS);
    }
  }

  get #logFile(): string {
    return join(this.folder, 'log');
  }
}
