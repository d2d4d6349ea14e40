// The window of the rate limit: how many jobs the store has given out since it opened. The first claim with a limit opens it, and all claims
// count in it. It judges each claim with a limit.

export class RateBook {
  #world;
  #time;
  #fences;
  #endsAt = Number.NEGATIVE_INFINITY;
  #used = 0;

  constructor({ world, time, fences }) {
    this.#world = world;
    this.#time = time;
    this.#fences = fences;
  }

  /** Called before the tokens of the reply are known: a repeated claim gives out nothing new. */
  claimed({ limit, jobIds }, { jobs }) {
    const given = jobs.filter(({ token }) => !this.#fences.isKnown(token));
    if (given.length === 0) return;
    const isOpen = this.#endsAt > this.#time.now();
    if (!isOpen && limit === undefined) return;
    if (!isOpen) this.#endsAt = this.#time.after(limit.durationMs);
    this.#used = (isOpen ? this.#used : 0) + given.length;
    if (limit === undefined || jobIds !== undefined || this.#used <= limit.max) return;
    const job = given.at(-1).id;
    const text = `${job} is the start number ${this.#used} of a window that allows ${limit.max}`;
    this.#world.violate({ invariant: 'no more starts than the rate allows', text, job });
  }
}
