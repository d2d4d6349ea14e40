// Pseudo-random numbers that repeat with the same seed, so that a failure can be repeated.

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Returns a number from 0 up to, but not including, `below` (mulberry32). */
  int(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  }

  chance(oneIn: number): boolean {
    return this.int(oneIn) === 0;
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list.length === 0 ? undefined : list[this.int(list.length)];
  }

  /** Returns up to `most` items of a list, in a random order. */
  some<T>(list: readonly T[], most: number): T[] {
    const left = [...list];
    const picked: T[] = [];
    while (left.length > 0 && picked.length < most) picked.push(...left.splice(this.int(left.length), 1));
    return picked;
  }
}
