// Numbers that look random and come again with the same seed. Each part of a run draws from a stream of its own, named after it, so that
// leaving out a fault does not change what all the others do.

export class Random {
  #name;
  #state;

  constructor(name) {
    this.#name = String(name);
    this.#state = hashOf(this.#name);
  }

  fork(name) {
    return new Random(`${this.#name}/${name}`);
  }

  /** From 0 up to, but not including, 1 (mulberry32). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  int(below) {
    return Math.floor(this.next() * below);
  }

  between(low, high) {
    return low + this.next() * (high - low);
  }

  chance(share) {
    return this.next() < share;
  }

  pick(list) {
    return list[this.int(list.length)];
  }
}

/** FNV-1a, then mixed: names that differ in their last letter must not give neighbouring streams. */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
