// Looks at the two observed processes and at the store, again and again while the nemesis rages. Who does not answer in time, being frozen
// or blocked, or restarted, leaves a gap in the curve.
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresSize } from './sizes/postgres.mjs';
import { redisSize } from './sizes/redis.mjs';
import { sqliteSize } from './sizes/sqlite.mjs';

const SIZES = { redis: redisSize, postgres: postgresSize, sqlite: sqliteSize };
const OBSERVED = ['worker', 'producer'];
const PATIENCE_MS = 8000;

export class Sampler {
  /** `{ ms, values }`, oldest first. */
  samples = [];
  #everyMs;
  #store;

  constructor(store, everyMs) {
    this.#store = store;
    this.#everyMs = everyMs;
  }

  /** Answers how to stop. */
  start({ crew, place }) {
    const began = performance.now();
    const leaving = new AbortController();
    const sampling = (async () => {
      for (let due = this.#everyMs; !leaving.signal.aborted; due += this.#everyMs) {
        await sleep(Math.max(0, began + due - performance.now()), undefined, { signal: leaving.signal }).catch(() => undefined);
        if (leaving.signal.aborted) return;
        const ms = Math.round(performance.now() - began);
        this.samples.push({ ms, values: await this.#look(crew, place) });
      }
    })();
    return async () => {
      leaving.abort();
      await sampling;
    };
  }

  async #look(crew, place) {
    const processes = OBSERVED.map(async (role) => {
      const { number: _, ...found } = (await crew.ask(`${role}-observed`, { wants: 'sample' }, PATIENCE_MS)) ?? {};
      return Object.entries(found).map(([what, value]) => [`${role} ${what}`, value]);
    });
    const store = SIZES[this.#store](place).then(Object.entries, () => []);
    return Object.fromEntries((await Promise.all([...processes, store])).flat());
  }
}
