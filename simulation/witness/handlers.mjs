// What running handlers are told: a cancel and a time limit reach their signal in time, and a run ends when its time is over, whatever its
// handler does. All of this is judged only in runs in which nothing goes wrong.

/** The store is asked for notices every half second, and a renewal follows. */
const HEARD_MS = 1200;
/** A timer fires, and what it sends reaches the store and comes back. */
const ACTED_MS = 600;
/** How much later than the loop the lock thread ends a run. */
const THREAD_LATER_MS = 1000;
/** The clocks of processes differ. */
const SLOWEST = 1.01;

export class Handlers {
  /** Set by a run in which nothing goes wrong, but for late replies to claims. */
  isJudged = false;
  /** The same, without these: what ends a run may wait behind them. */
  judgesLimits = false;
  graceMs = 0;
  /** By token. */
  #running = new Map();
  /** When the job of each token was cancelled. */
  #cancelled = new Map();
  #world;
  #isOwner;

  constructor(world, isOwner) {
    this.#world = world;
    this.#isOwner = isOwner;
  }

  /** Returns how to tell that the handler has ended. */
  began({ id, lock: { token }, opts: { timeoutMs } }, process, signal) {
    // A session that is not renewed gets no notices.
    if (!this.isJudged || process.isTimed) return () => undefined;
    this.#running.set(token, { id, token, process, signal, timeoutMs, beganAt: this.#world.now });
    return () => this.#running.delete(token);
  }

  cancelled(token) {
    if (this.isJudged) this.#cancelled.set(token, this.#world.now);
  }

  look() {
    for (const handler of this.#running.values()) {
      const { id, token, process } = handler;
      // What is dead or frozen hears nothing, and another outcome may be under way.
      if (process.isDead || !this.#isOwner(id, token)) continue;
      this.#judgeCancel(handler);
      if (this.judgesLimits && handler.timeoutMs !== undefined) this.#judgeLimit(handler);
    }
  }

  #judgeCancel({ id, token, process, signal, beganAt }) {
    const at = this.#cancelled.get(token);
    if (at === undefined || signal.aborted) return;
    if (this.#isPast(Math.max(at, beganAt, process.loop.heldUntil) + HEARD_MS))
      this.#violate('a cancel is heard', id, `${id} was cancelled at ${Math.round(at)}, and its handler has not heard of it`);
  }

  #judgeLimit({ id, process, signal, timeoutMs, beganAt }) {
    const { heldUntil } = process.loop;
    if (!signal.aborted && this.#isPast(Math.max(beganAt + SLOWEST * timeoutMs, heldUntil) + ACTED_MS))
      this.#violate('a time limit is kept', id, `${id} has a limit of ${timeoutMs} ms, and its handler has not heard of it`);
    const overAt = beganAt + SLOWEST * (timeoutMs + this.graceMs);
    const isLate =
      process.thread === undefined
        ? this.#isPast(Math.max(overAt, heldUntil + this.graceMs) + ACTED_MS)
        : this.#isPast(overAt + THREAD_LATER_MS + ACTED_MS);
    if (isLate) this.#violate('a time limit is kept', id, `the time of ${id} is over, and its run has not ended`);
  }

  #isPast(time) {
    return this.#world.now > time;
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
