// Chooses faults and strikes, several at a time, never two at the same target. A fault is
//   { kind, weight, target(random), lasts?(random), strike(target, random), end?(target) }
// `strike` may answer details for the history. One that lasts is ended after that time; whoever strikes must be able to end it at any moment.
// What it chooses does not depend on what came of earlier choices, as far as that can be: the same seed strikes another queue in the same way.
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from './random.mjs';

const AT_ONCE = 4;

export class Nemesis {
  /** How often each kind has struck. */
  counts = {};
  #faults;
  #random;
  #note;
  #busy = new Map();
  #calm = new AbortController();
  #failure;

  constructor({ faults, random, note }) {
    this.#faults = faults;
    this.#random = random;
    this.#note = note;
  }

  get current() {
    return [...this.#busy.keys()];
  }

  get count() {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }

  async rage(ms, paceMs) {
    const end = performance.now() + ms;
    while (performance.now() < end && this.#failure === undefined) {
      const next = performance.now() + paceMs * (0.4 + 1.2 * this.#random.next());
      this.#strikeSomewhere();
      await sleep(Math.max(0, Math.min(next, end) - performance.now()));
    }
    this.#calm.abort();
    await Promise.all(this.#busy.values());
    if (this.#failure !== undefined) throw this.#failure;
  }

  #strikeSomewhere() {
    const fault = this.#random.weighted(this.#faults);
    const random = new Random(this.#random.between(1, 2 ** 30));
    const target = fault.target(random);
    if (this.#busy.size >= AT_ONCE || this.#busy.has(target)) return;
    const failed = (error) => {
      this.#failure ??= new Error(`"${fault.kind}" could not be done to ${target}: ${error.message}`, { cause: error });
    };
    const struck = this.#strike(fault, target, random)
      .catch(failed)
      .finally(() => this.#busy.delete(target));
    this.#busy.set(target, struck);
  }

  async #strike({ kind, lasts, strike, end }, target, random) {
    const ms = lasts?.(random) ?? 0;
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.#note('fault', { kind, target, lastsMs: ms });
    try {
      await strike(target, random);
      if (ms > 0) await sleep(ms, undefined, { signal: this.#calm.signal }).catch(() => undefined);
    } finally {
      await end?.(target);
      if (end !== undefined || ms > 0) this.#note('fault over', { kind, target });
    }
  }
}

/** For `lasts`. */
export const within =
  ([least, most]) =>
  (random) =>
    random.between(least, most);
