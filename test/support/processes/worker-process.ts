// A worker in a process of its own (test/acceptance/fixtures/worker.mjs, or another program that talks like it): what happens there
// arrives as moments. It is killed when the test ends, should it still be there.
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Connection, WorkerOptions } from 'holdfast';
import { onTestFinished } from 'vitest';
import { MomentLog } from '../wait/moments.js';
import type { ShiftedClock } from '../servers/wall-clock.js';
import { until } from '../wait/until.js';

export interface ProcessPlan {
  queue: string;
  connection: Connection;
  options?: Omit<WorkerOptions, 'connection' | 'settings'>;
  /** Modules to load before anything else. */
  imports?: string[];
  /** Of `sandbox-worker.mjs`. */
  closes?: boolean;
}

export interface ProcessEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Environment extends Pick<ShiftedClock, 'env' | 'execArgv'> {
  /** The program that runs Node, whose path and arguments `execArgv` has then. */
  execPath?: string;
  /** In a process group of its own. */
  detached?: boolean;
}

export const OWN_CLOCK: Environment = { env: {}, execArgv: [] };

export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../acceptance/fixtures/${name}`, import.meta.url));
}

export class WorkerProcess extends MomentLog {
  readonly exited: Promise<ProcessEnd>;
  readonly #child: ChildProcess;
  #stderr = '';

  constructor(plan: ProcessPlan, program = 'worker.mjs', clock: Environment = OWN_CLOCK) {
    super();
    const execArgv = [...clock.execArgv, ...(plan.imports ?? []).flatMap((file) => ['--import', file])];
    const env = { ...process.env, ...clock.env };
    const { detached = false } = clock;
    const by = clock.execPath === undefined ? { detached } : { execPath: clock.execPath, detached };
    const child = fork(fixture(program), [JSON.stringify(plan)], {
      env,
      execArgv,
      ...by,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    if (child.stdout !== null) createInterface(child.stdout).on('line', (line) => this.#hear(line));
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.exited = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await this.exited;
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** As a terminal does, and many supervisors. Only for a process in a group of its own. */
  killGroup(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }

  /** Stops the process and comes back when the kernel says that none of its threads runs. */
  async freeze(): Promise<void> {
    this.kill('SIGSTOP');
    await until('the process is stopped', async () => /^State:\s+T/m.test(readFileSync(`/proc/${this.pid}/status`, 'utf8')));
  }

  thaw(): void {
    this.kill('SIGCONT');
  }

  send(command: string): void {
    this.#child.send(command);
  }

  /** All that it has printed there so far. */
  get stderr(): string {
    return this.#stderr;
  }

  override toString(): string {
    return `${super.toString()}\n${this.#stderr}`;
  }

  #hear(line: string): void {
    if (!line.startsWith('{')) return;
    const { event, at, ...fields } = JSON.parse(line) as { event: string; at: number };
    this.happen(event, fields, at);
  }
}
