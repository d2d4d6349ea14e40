// The processes that the nemesis torments. Each has a part ("worker-2") and lives many lives ("worker-2.7"): whoever ends, by whatever hand,
// is started again until the crew is dismissed.
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { KEEPING } from './lock-times.mjs';

const MORTAL_THREAD = fileURLToPath(new URL('../test/faults/fixtures/mortal-thread.mjs', import.meta.url));
const PARTS = [
  ['producer', 2],
  ['worker', 4],
  ['leader', 3],
  ['locker', 3],
];
/** A handler may last for 8 s, and a fault that strikes meanwhile for 12 s. */
const LEAVE_WITHIN_MS = 40_000;

export class Crew {
  parts = PARTS.flatMap(([role, count]) => Array.from({ length: count }, (_, index) => ({ role, name: `${role}-${index + 1}` })));
  #lives = new Map();
  #counts = new Map();
  #dismissed = new Set();
  #over = false;
  #stage;

  /** `stage`: { folder, resource, note, random, connectionFor(part), clock, crashGraceMs }. */
  constructor(stage) {
    this.#stage = stage;
  }

  names(...roles) {
    return this.parts.filter(({ role }) => roles.length === 0 || roles.includes(role)).map(({ name }) => name);
  }

  /** Resolves when everybody is there. */
  async startAll() {
    for (const { name } of this.parts) this.#start(name);
    await Promise.all([...this.#lives.values()].map(({ ready, ended }) => Promise.race([ready, ended])));
  }

  kill(name) {
    const life = this.#lives.get(name);
    if (life === undefined) return;
    life.killed = true;
    this.#stage.note('killed', { victim: life.who });
    life.child.kill('SIGKILL');
  }

  freeze(name) {
    this.#lives.get(name)?.child.kill('SIGSTOP');
  }

  thaw(name) {
    this.#lives.get(name)?.child.kill('SIGCONT');
  }

  /** It is asked to leave in good order, and must do so. */
  async leave(name) {
    const life = this.#lives.get(name);
    if (life === undefined) return;
    life.leaving = true;
    life.child.kill('SIGTERM');
    const patience = new AbortController();
    const late = sleep(LEAVE_WITHIN_MS, 'late', { signal: patience.signal }).catch(() => undefined);
    const outcome = await Promise.race([life.ended, late]);
    patience.abort();
    if (outcome !== 'late' || life.killed) return;
    this.#stage.note('did not close', { victim: life.who, withinMs: LEAVE_WITHIN_MS });
    life.killed = true;
    life.child.kill('SIGKILL');
    await life.ended;
  }

  /** Its lock thread dies at its next look. */
  killThread(name, how) {
    writeFileSync(this.#deathOf(name), how);
  }

  /** They leave and nobody takes their place. */
  async dismiss(...roles) {
    const names = this.names(...roles);
    for (const name of names) this.#dismissed.add(name);
    await Promise.all(names.map((name) => this.leave(name)));
  }

  /** However things stand: nothing runs afterwards. */
  async end() {
    this.#over = true;
    const lives = [...this.#lives.values()];
    for (const life of lives) {
      life.killed = true;
      life.child.kill('SIGKILL');
    }
    await Promise.all(lives.map(({ ended }) => ended));
  }

  #start(name) {
    const { folder, resource, note, random, connectionFor, clock, crashGraceMs } = this.#stage;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const who = `${name}.${count}`;
    const role = name.split('-')[0];
    // One of the workers renews on its event loop.
    const thread = name === 'worker-4' ? { useDedicatedLockThread: false } : { lockThreadEntry: MORTAL_THREAD };
    const keeping = { ...KEEPING, ...thread, ...(crashGraceMs === undefined ? {} : { crashGraceMs }) };
    const plan = { who, folder, resource, connection: connectionFor(name), keeping, seed: random.between(1, 2 ** 30) };
    rmSync(this.#deathOf(name), { force: true });
    const program = fileURLToPath(new URL(`actors/${role}.mjs`, import.meta.url));
    const env = { ...process.env, ...clock?.env(name), THREAD_DEATH: this.#deathOf(name) };
    const errors = join(folder, `${who}.stderr`);
    writeFileSync(errors, '');
    const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env });
    child.stderr.on('data', (chunk) => writeFileSync(errors, chunk, { flag: 'a' }));
    const life = { who, child, killed: false, leaving: false };
    life.ready = new Promise((resolve) => child.once('message', resolve));
    life.ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        clock?.forget(child.pid);
        this.#lives.delete(name);
        // One that has just been started does not listen to SIGTERM yet.
        const expected = life.killed || code === 0 || (life.leaving && signal === 'SIGTERM');
        if (!expected) {
          const said = readFileSync(errors, 'utf8').slice(-2000);
          note('ended by itself', { victim: who, how: signal ?? `code ${code}`, said });
        }
        resolve('ended');
        void this.#replace(name);
      });
    });
    this.#lives.set(name, life);
  }

  async #replace(name) {
    await sleep(this.#stage.random.between(100, 1500));
    if (!this.#over && !this.#dismissed.has(name)) this.#start(name);
  }

  #deathOf(name) {
    return join(this.#stage.folder, `${name}.death`);
  }
}
