// The processes that the nemesis torments. Each has a part ("worker-2") and lives many lives ("worker-2.7"): whoever ends, by whatever hand,
// is started again until the crew is dismissed.
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MORTAL_THREAD = fileURLToPath(new URL('../test/faults/fixtures/mortal-thread.mjs', import.meta.url));
/** A handler may last for 8 s, and a fault that strikes meanwhile for 12 s. */
const LEAVE_WITHIN_MS = 40_000;

export class Crew {
  parts;
  #lives = new Map();
  #counts = new Map();
  #dismissed = new Set();
  #over = false;
  #asked = 0;
  #stage;

  /** `stage`: { cast, folder, resource, note, random, connectionFor(part), clock, keeping }; see cast.mjs. */
  constructor(stage) {
    this.#stage = stage;
    this.parts = stage.cast.parts;
  }

  names(...roles) {
    return this.#named(this.parts, roles);
  }

  /** Those whom the nemesis may end. */
  mortals(...roles) {
    return this.#named(
      this.parts.filter(({ spared }) => spared !== true),
      roles,
    );
  }

  #named(parts, roles) {
    return parts.filter(({ role }) => roles.length === 0 || roles.includes(role)).map(({ name }) => name);
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
    const outcome = await orLate(life.ended, LEAVE_WITHIN_MS);
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

  /** Its answer to a message; undefined when there is none in time. */
  async ask(name, message, withinMs) {
    const life = this.#lives.get(name);
    if (life === undefined) return undefined;
    const number = ++this.#asked;
    const answered = new Promise((resolve) => life.answers.set(number, resolve));
    // One that has just been killed cannot be reached.
    life.child.send({ number, ...message }, () => undefined);
    const outcome = await orLate(Promise.race([answered, life.ended]), withinMs);
    life.answers.delete(number);
    return typeof outcome === 'object' ? outcome : undefined;
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
    const { cast, folder, resource, note, random, connectionFor, clock } = this.#stage;
    const { program, onLoop = false, execArgv = [], details = {} } = this.parts.find((part) => part.name === name);
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const who = `${name}.${count}`;
    const thread = onLoop ? { useDedicatedLockThread: false } : { lockThreadEntry: MORTAL_THREAD };
    const keeping = { ...this.#stage.keeping, ...thread };
    const acting = { ...cast.acting, ...details, queues: cast.queues, seed: random.between(1, 2 ** 30) };
    const plan = { who, folder, resource, connection: connectionFor(name), keeping, ...acting };
    rmSync(this.#deathOf(name), { force: true });
    const env = { ...process.env, ...clock?.env(name), THREAD_DEATH: this.#deathOf(name) };
    const errors = join(folder, `${who}.stderr`);
    writeFileSync(errors, '');
    const child = spawn(process.execPath, [...execArgv, program, JSON.stringify(plan)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env,
    });
    child.stderr.on('data', (chunk) => writeFileSync(errors, chunk, { flag: 'a' }));
    const life = { who, child, killed: false, leaving: false, answers: new Map() };
    child.on('message', (message) => life.answers.get(message.number)?.(message));
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

async function orLate(promise, ms) {
  const patience = new AbortController();
  const late = sleep(ms, 'late', { signal: patience.signal }).catch(() => undefined);
  const outcome = await Promise.race([promise, late]);
  patience.abort();
  return outcome;
}
