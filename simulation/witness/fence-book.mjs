// Tokens are new and the fences of a queue grow with every acquisition, of jobs and of names alike.

export class FenceBook {
  #world;
  #tokens = new Set();
  /** By queue. */
  #last = new Map();
  #queue;

  /** `queue`: that of the names, and of most jobs. */
  constructor(world, queue) {
    this.#world = world;
    this.#queue = queue;
  }

  isKnown(token) {
    return this.#tokens.has(token);
  }

  /** As if all that were granted there had been granted here. */
  takeOver(before) {
    for (const [queue, last] of before.#last) this.#last.set(queue, Math.max(this.#last.get(queue) ?? 0, last));
  }

  granted(what, token, fence, queue = this.#queue) {
    const last = this.#last.get(queue) ?? 0;
    if (!(fence > last)) {
      const text = `${what.job ?? what.name} was granted under fence ${fence} after fence ${last} had been given`;
      this.#world.violate({ invariant: 'tokens and fences grow', text, ...what });
    }
    this.#last.set(queue, Math.max(last, fence));
    this.#tokens.add(token);
  }
}
