// Starts the processes of contestants, each with the same flags, and talks to them. None outlives the driver.
import { fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newerNode } from './peers.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const PROCESS = join(here, 'contestant-process.mjs');
const FLAGS = ['--expose-gc', '--no-warnings'];
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class Actor extends EventEmitter {
  #child;
  #calls = 0;

  /** Its process, with the contestant opened at this place, if one is given. */
  static async start(contestant, place) {
    const actor = new Actor(contestant);
    try {
      await once(actor, 'ready');
      if (place !== undefined) await actor.call('open', { ...place, options: contestant.options });
      return actor;
    } catch (error) {
      await actor.kill();
      throw error;
    }
  }

  constructor(contestant) {
    super();
    const execPath = contestant.newerNode ? newerNode() : process.execPath;
    this.#child = fork(PROCESS, [join(here, contestant.module)], {
      execPath,
      execArgv: FLAGS,
      stdio: ['ignore', 'ignore', process.env.BENCH_DEBUG ? 'inherit' : 'ignore', 'ipc'],
    });
    running.add(this.#child);
    this.#child.on('message', (message) => {
      if (message.event !== undefined) this.emit(message.event, message);
      else this.emit(`call ${message.call}`, message);
    });
    this.#child.once('exit', (code) => {
      running.delete(this.#child);
      if (this.listenerCount('error') > 0 && code !== null)
        this.emit('error', new Error(`${contestant.label} ended with ${code}.`));
    });
  }

  get pid() {
    return this.#child.pid;
  }

  async call(verb, args = {}) {
    this.#calls += 1;
    const call = this.#calls;
    const answered = once(this, `call ${call}`);
    this.#child.send({ call, verb, args });
    const [{ answer, error }] = await answered;
    if (error !== undefined) throw new Error(error);
    return answer;
  }

  /** At once: what it leaves behind goes with its place. */
  async kill() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

/** Gives `work` a function that starts processes, and ends all of them afterwards. */
export async function withActors(work) {
  const actors = [];
  try {
    return await work(async (contestant, place) => {
      const actor = await Actor.start(contestant, place);
      actors.push(actor);
      return actor;
    });
  } finally {
    await Promise.all(actors.map((actor) => actor.kill()));
  }
}

/** Rejects when nothing came of it in time. */
export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${ms / 1000} s.`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
