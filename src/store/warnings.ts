import type { HoldfastError } from '../errors.js';

/** Faults of the server's settings or the store's files. A listener that comes late gets the earlier warnings. */
export class Warnings {
  readonly #listeners = new Set<(warning: HoldfastError) => void>();
  #current: readonly HoldfastError[] = [];

  set(warnings: readonly HoldfastError[]): void {
    this.#current = warnings;
    for (const warning of warnings) this.tell(warning);
  }

  /** Adds the warning unless it is known already. */
  setOnce(warning: HoldfastError): void {
    if (this.#current.some(({ message }) => message === warning.message)) return;
    this.#current = [...this.#current, warning];
    this.tell(warning);
  }

  /** To those who listen now. */
  tell(warning: HoldfastError): void {
    for (const listener of this.#listeners) listener(warning);
  }

  listen(listener: (warning: HoldfastError) => void): () => void {
    const call = (warning: HoldfastError): void => listener(warning);
    this.#listeners.add(call);
    for (const warning of this.#current) call(warning);
    return () => void this.#listeners.delete(call);
  }
}
