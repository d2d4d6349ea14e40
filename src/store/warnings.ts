import type { HoldfastError } from '../errors.js';

/** Warnings about the server's settings or the store's files. A listener that is added late gets the earlier warnings. */
export class Warnings {
  readonly #listeners = new Set<(warning: HoldfastError) => void>();
  #current: readonly HoldfastError[] = [];

  set(warnings: readonly HoldfastError[]): void {
    this.#current = warnings;
    for (const warning of warnings) this.report(warning);
  }

  /** Adds the warning unless it was added before. */
  setOnce(warning: HoldfastError): void {
    if (this.#current.some(({ message }) => message === warning.message)) return;
    this.#current = [...this.#current, warning];
    this.report(warning);
  }

  /** Sends the warning to the current listeners only. */
  report(warning: HoldfastError): void {
    for (const listener of this.#listeners) listener(warning);
  }

  listen(listener: (warning: HoldfastError) => void): () => void {
    const call = (warning: HoldfastError): void => listener(warning);
    this.#listeners.add(call);
    for (const warning of this.#current) call(warning);
    return () => void this.#listeners.delete(call);
  }
}
