// Runs that have ended, and runs that go on, while the loop of their process does not reach the store. Judged only in runs in which nothing else
// goes wrong.

export class Endings {
  /** How long an ended run may keep its job, in ms; undefined if the run is not judged. */
  movesOnMs;
  #ended = new Map();
  #world;
  #isOwner;

  constructor(world, isOwner) {
    this.#world = world;
    this.#isOwner = isOwner;
  }

  /** The handler of a run has ended. `hasThread`: a lock thread has renewed its lock all the time. */
  ended(id, token, hasThread) {
    if (this.movesOnMs === undefined) return;
    if (hasThread && !this.#isOwner(id, token))
      this.#world.violate({
        invariant: 'a run that goes on keeps its job',
        text: `${id} was taken away while its handler ran`,
        job: id,
      });
    this.#ended.set(token, { id, at: this.#world.now });
  }

  look() {
    for (const [token, { id, at }] of this.#ended) {
      if (!this.#isOwner(id, token)) this.#ended.delete(token);
      else if (this.#world.now > at + this.movesOnMs) {
        const text = `the run of ${id} ended at ${Math.round(at)}, and nobody else has got the job`;
        this.#world.violate({ invariant: 'a job whose run has ended moves on', text, job: id });
      }
    }
  }
}
