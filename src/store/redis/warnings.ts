import type { HoldfastError } from '../../errors.js';

/** What is wrong with the server's settings, for whoever listens: those who come late are told what was found before. */
export class Warnings {
  readonly #listeners = new Set<(warning: HoldfastError) => void>();
  #current: HoldfastError | undefined;

  set(warning: HoldfastError | undefined): void {
    this.#current = warning;
    if (warning !== undefined) for (const listener of this.#listeners) listener(warning);
  }

  listen(listener: (warning: HoldfastError) => void): () => void {
    const call = (warning: HoldfastError): void => listener(warning);
    this.#listeners.add(call);
    if (this.#current !== undefined) call(this.#current);
    return () => void this.#listeners.delete(call);
  }
}
