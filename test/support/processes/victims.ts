// A lane of the SIGKILL test: one file, a producer and two workers on it, each killed again and again at a random moment, from outside or at a
// step inside a transaction of its own, and replaced at once.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endOf } from './complaints.js';
import { sleep, until } from '../wait/until.js';
import { paced } from '../wait/pace.js';

export interface Death {
  role: 'producer' | 'worker';
  pid: number;
  /** Monotonic ms; a moment not after the death. */
  at: number;
  inside: boolean;
}

export interface LaneOptions {
  name: string;
  folder: string;
  connection: string;
  random: () => number;
  /** Worker options of the victims. */
  options: object;
  /** Producers note what they add as acknowledged before it is. */
  lies?: boolean;
}

/** How long a victim lives once it has begun: on a busy machine, starting alone takes seconds. */
const LIFE_MS = { least: 20, most: paced(700) };
/** These are killed within that time from their very start. */
const EARLY_SHARE = 0.2;
const INSIDE_SHARE = 0.4;
/** Steps inside transactions until a victim dies of itself: about what it does in a second. */
const MOST_STEPS = 400;

export class Lane {
  readonly deaths: Death[] = [];
  readonly diaries: string[] = [];
  /** Ends that nobody ordered. */
  readonly surprises: string[] = [];
  readonly #options: LaneOptions;
  readonly #children = new Set<ChildProcess>();
  #born = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Resolves when so many have died. */
  async kill(count: number): Promise<void> {
    const slot = async (role: Death['role']): Promise<void> => {
      while (this.deaths.length < count && this.surprises.length === 0) await this.#liveAndDie(role);
    };
    await Promise.all([slot('producer'), slot('worker'), slot('worker')]);
  }

  /** Two workers that are left alone, until `done`; then everybody goes home. */
  async drain(done: () => Promise<unknown>): Promise<void> {
    const workers = [this.#bear('worker'), this.#bear('worker')];
    // A signal before that would find nobody listening.
    const ready = ({ diary }: { diary: string }): boolean => existsSync(diary) && readFileSync(diary, 'utf8').includes('"ready"');
    await until('the last workers to be ready', () => workers.every(ready));
    await done();
    for (const { child } of workers) child.kill('SIGTERM');
    for (const { end } of workers) {
      const how = await end;
      if (how !== 'code 0') this.surprises.push(`a worker that was asked to close ended with ${how}`);
    }
  }

  /** For tests that failed half-way. */
  clear(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  async #liveAndDie(role: Death['role']): Promise<void> {
    const { random } = this.#options;
    const inside = random() < INSIDE_SHARE;
    const killAtStep = inside ? 1 + Math.floor(random() * MOST_STEPS) : undefined;
    const early = random() < EARLY_SHARE;
    const { child, diary, end } = this.#bear(role, killAtStep);
    const lifeMs = LIFE_MS.least + random() * (LIFE_MS.most - LIFE_MS.least);
    const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
    if (!early) await until('a victim to begin', () => existsSync(diary) || isOver());
    // Those that die of themselves get more time; some of them never do enough for it.
    const patience = new AbortController();
    const first = await Promise.race([
      end,
      sleep(inside ? 3 * LIFE_MS.most : lifeMs, undefined, { signal: patience.signal }).catch(() => undefined),
    ]);
    patience.abort();
    const at = Number(process.hrtime.bigint()) / 1e6;
    if (first === undefined) child.kill('SIGKILL');
    const how = await end;
    if (how === 'SIGKILL') this.deaths.push({ role, pid: child.pid ?? 0, at, inside: first !== undefined });
    else this.surprises.push(`a ${role} ended by itself with ${how}`);
  }

  #bear(role: Death['role'], killAtStep?: number): { child: ChildProcess; diary: string; end: Promise<string> } {
    this.#born += 1;
    const { folder, connection, options, lies = false } = this.#options;
    const name = `${this.#options.name}-${role}-${this.#born}`;
    const diary = join(folder, `${name}.diary`);
    this.diaries.push(diary);
    const file = fileURLToPath(new URL(`../../faults/fixtures/sigkill-${role}.mjs`, import.meta.url));
    const plan = { connection, diary, name, options, lies, ...(killAtStep === undefined ? {} : { killAtStep }) };
    const child = spawn(process.execPath, [file, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#children.add(child);
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const end = new Promise<string>((resolve) => {
      child.once('close', (code, signal) => {
        this.#children.delete(child);
        resolve(endOf(code, signal, stderr));
      });
    });
    return { child, diary, end };
  }
}
