// The one clock and the one scheduler of a run. A step is one callback of one loop with all the microtasks that follow from it; between
// steps everything is at rest, so that a crash, a look at the store or a look into a handler can come between any two of them.
// Time passes only when nothing can run any more at the present moment.

/** A program that spins without time passing would never come to an end. */
const MOST_STEPS = 50_000;

export class World {
  now = 0;
  steps = 0;
  loops = [];
  violation;
  #random;
  #look;

  constructor(random, look) {
    this.#random = random;
    this.#look = look;
  }

  /** The first one counts: what follows from it tells nothing. */
  violate(violation) {
    this.violation ??= { at: this.now, ...violation };
  }

  /** Until `isOver` answers true, time `until` has come, or something is violated. */
  async run(until, isOver) {
    while (this.violation === undefined && !isOver()) {
      const ready = this.#ready(until);
      if (ready === undefined) {
        this.now = Math.max(this.now, until);
        return;
      }
      await this.#step(ready);
    }
  }

  #ready(until) {
    let at = until;
    for (const loop of this.loops) at = Math.min(at, loop.nextAt);
    if (at >= until) return undefined;
    this.now = Math.max(this.now, at);
    const ready = this.loops.filter((loop) => loop.nextAt <= this.now);
    return this.#random.pick(ready);
  }

  async #step(loop) {
    this.steps += 1;
    // Time has passed, and nobody has acted on it yet.
    this.#look();
    if (this.steps > MOST_STEPS) this.violate({ invariant: 'every job ends', text: `no end after ${MOST_STEPS} steps` });
    try {
      loop.step();
    } catch (error) {
      this.violate({ invariant: 'no uncaught error', text: `${loop.name} threw: ${error.stack}` });
    }
    await quiet();
    this.loops = this.loops.filter(({ dead }) => !dead);
    this.#look();
  }
}

/** When no microtask is left. */
function quiet() {
  return new Promise((resolve) => setImmediate(resolve));
}
