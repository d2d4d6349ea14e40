// Named moments that a test can wait for: the next one, or the n-th since the beginning.

interface Waiter<T> {
  /** Undefined: the next moment. */
  nth: number | undefined;
  resolve(moment: T): void;
}

export class Moments<T> {
  readonly #past: T[] = [];
  #waiting: Waiter<T>[] = [];

  get count(): number {
    return this.#past.length;
  }

  /** Resolves with the next moment. With `nth`, with the n-th moment ever (counted from 1), which may already be past. */
  wait(nth?: number): Promise<T> {
    const past = nth === undefined ? undefined : this.#past[nth - 1];
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => this.#waiting.push({ nth, resolve }));
  }

  happen(moment: T): void {
    this.#past.push(moment);
    const reached = this.#waiting.filter(({ nth }) => nth === undefined || nth === this.count);
    this.#waiting = this.#waiting.filter((waiter) => !reached.includes(waiter));
    for (const { resolve } of reached) resolve(moment);
  }
}
