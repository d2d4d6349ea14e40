// Notifies watchers that the queue may have changed: after the verb, never inside it, and once for many changes.

export class Wake {
  readonly #listeners = new Set<() => void>();
  #pending = false;

  get watched(): boolean {
    return this.#listeners.size > 0;
  }

  watch(listener: () => void): () => void {
    // Wrap the listener, because the same listener may watch twice.
    const call = () => listener();
    this.#listeners.add(call);
    return () => {
      this.#listeners.delete(call);
    };
  }

  signal(): void {
    if (this.#pending || this.#listeners.size === 0) return;
    this.#pending = true;
    // A promise and not setImmediate, because tests with faked timers would never be woken.
    void Promise.resolve().then(() => {
      this.#pending = false;
      // A listener may stop watching, or watch anew, while the others are called.
      const calls = [...this.#listeners];
      for (const call of calls) if (this.#listeners.has(call)) call();
    });
  }

  clear(): void {
    this.#listeners.clear();
  }
}
