// Which sessions there are and how long each of them lives, from what went in and out of the store and from nothing else.

export class SessionBook {
  #world;
  #time;
  #sessions = new Map();

  /** `time` is that of the store. */
  constructor(world, time) {
    this.#world = world;
    this.#time = time;
  }

  get(id) {
    return this.#sessions.get(id);
  }

  opened({ queue, id, durationMs, maxStalls, graceMs }, process) {
    if (this.#sessions.has(id)) {
      this.#world.violate({ invariant: 'session ids are new', text: `${id} was opened a second time`, session: id });
    }
    const expiresAt = this.#time.after(durationMs);
    this.#sessions.set(id, { queue, id, process, durationMs, maxStalls, graceMs, expiresAt, isOver: false });
  }

  renewed({ id }, { alive }) {
    const session = this.#sessions.get(id);
    const isOver = session?.isOver ?? true;
    if (alive && isOver) {
      this.#world.violate({ invariant: 'the reaped stay dead', text: `${id} was renewed after it had ended`, session: id });
    } else if (!alive && !isOver) {
      this.#world.violate({
        invariant: 'only the dead are swept',
        text: `${id} was told that it is dead, and it is not`,
        session: id,
      });
    }
    if (alive && session !== undefined) session.expiresAt = this.#time.after(session.durationMs);
  }

  /** A hint, or its end: it expires in so many ms unless it is renewed. */
  shortened(id, ms) {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.expiresAt = this.#time.now() + ms;
  }

  end(id) {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.isOver = true;
  }

  /** A sweep of a queue ends all that have expired there; answers them. */
  reap(queue) {
    const now = this.#time.now();
    const reaped = [...this.#sessions.values()].filter(
      (session) => session.queue === queue && !session.isOver && session.expiresAt <= now,
    );
    for (const session of reaped) session.isOver = true;
    return reaped;
  }

  isAlive(id) {
    const session = this.#sessions.get(id);
    return session !== undefined && !session.isOver && session.expiresAt > this.#time.now();
  }
}
