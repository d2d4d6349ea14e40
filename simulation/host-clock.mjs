// The clocks of one simulated host. The monotonic one runs at a rate of its own, within the bound that trust allows for, and may wrap
// around 32 bits at any moment; the wall can be stepped, and nothing that matters may notice.
export const EPOCH_MS = Date.UTC(2030, 0, 1);

export class HostClock {
  #world;
  #rate;
  #start;
  #wallStep = 0;

  constructor(world, { rate = 1, startMs = 0 } = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#start = startMs;
  }

  monotonic() {
    return this.#start + this.#world.now * this.#rate;
  }

  wall() {
    return EPOCH_MS + this.#world.now * this.#rate + this.#wallStep;
  }

  stepWall(ms) {
    this.#wallStep += ms;
  }

  /** When it is so late here, on the clock of the world. */
  worldTime(monotonic) {
    return (monotonic - this.#start) / this.#rate;
  }
}
