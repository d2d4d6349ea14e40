// What owners believe. Once somebody else was let in, nobody who owned the same before may still believe in it: not a handler that looks at
// `job.lock.held`, not a holder of a name, not a leader. They are asked at any time from the grant on, each in a way of its own.

export class Trust {
  /** Whether anybody's belief is a violation. */
  isJudged = true;
  #world;
  #history;
  #random;
  /** Handlers and holders that have not come to their end, by what they own. */
  #believers = new Map();
  #superseded = new Set();
  #lastTerm = 0;

  constructor(world, history, random) {
    this.#world = world;
    this.#history = history;
    this.#random = random;
  }

  /**
   * Somebody works on a job or under a name: `what` is { job } or { name }. `current` is the token that owns it on the store now.
   * Answers how to tell that the work has ended.
   */
  began({ what, token, process, isHeld }, current) {
    const key = what.job ?? what.name;
    // A look changes what it looks at: whoever has seen that its lock is lost goes on knowing it. So some look all the time, others rarely.
    const gaze = this.#random.pick([1, 0.3, 0.05]);
    const believer = { what, token, process, isHeld, gaze };
    const all = this.#believers.get(key) ?? new Set();
    this.#believers.set(key, all.add(believer));
    if (current !== undefined && current !== token) this.#superseded.add(believer);
    return () => {
      all.delete(believer);
      this.#superseded.delete(believer);
    };
  }

  /** `except`: it lost the lock in a way that it hears of only later, or owns the new one too. */
  granted(key, token, except) {
    for (const believer of this.#believers.get(key) ?? []) {
      if (believer.token !== token && !except(believer)) this.#superseded.add(believer);
    }
    this.look();
  }

  look() {
    if (!this.isJudged) return;
    for (const believer of this.#superseded) {
      const { what, token, process, isHeld, gaze } = believer;
      if (process.isDead) this.#superseded.delete(believer);
      // What is frozen cannot look; it must not believe at its first look afterwards.
      else if (!process.isFrozen && this.#random.chance(gaze) && isHeld()) {
        const text = `${process.name} believes in its lock of ${what.job ?? `"${what.name}"`} (${token ?? 'a term'}), which somebody else got`;
        this.#world.violate({ invariant: 'trust ends first', text, ...what });
      }
    }
  }

  toldLeader(process, term) {
    this.#history.note(process.name, `leads in term ${term}`, { names: ['holdfast:leader'] });
    if (term <= this.#lastTerm) {
      const text = `${process.name} leads in term ${term} after term ${this.#lastTerm} had begun`;
      this.#world.violate({ invariant: 'one leader per term', text, name: 'holdfast:leader' });
    }
    this.#lastTerm = Math.max(this.#lastTerm, term);
  }
}
