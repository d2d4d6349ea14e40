// Choices that are the same for the same seed (mulberry32). The seed fixes what the nemesis does and when, not what comes of it.
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed | 0;
  }

  /** From 0 to below 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number. */
  between(least, most) {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability) {
    return this.next() < probability;
  }

  of(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  /** One of those with a `weight`. */
  weighted(list) {
    let left = this.next() * list.reduce((sum, { weight }) => sum + weight, 0);
    return list.find(({ weight }) => (left -= weight) < 0) ?? list.at(-1);
  }
}
