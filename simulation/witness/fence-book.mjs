// Tokens are new and fences grow with every acquisition, of jobs and of names alike.

export class FenceBook {
  #world;
  #tokens = new Set();
  #last = 0;

  constructor(world) {
    this.#world = world;
  }

  isKnown(token) {
    return this.#tokens.has(token);
  }

  /** As if all that were granted there had been granted here. */
  takeOver(before) {
    this.#last = Math.max(this.#last, before.#last);
  }

  granted(what, token, fence) {
    if (!(fence > this.#last)) {
      const text = `${what.job ?? what.name} was granted under fence ${fence} after fence ${this.#last} had been given`;
      this.#world.violate({ invariant: 'tokens and fences grow', text, ...what });
    }
    this.#last = Math.max(this.#last, fence);
    this.#tokens.add(token);
  }
}
