// Reports an outage of the store to the user: each reason once, and the end once.
import { HoldfastError } from '../errors.js';
import { systemClock } from './clock.js';

/** Remembers the reported reasons of the current outage. All lanes of a caller share one report, so each reason is reported once. */
export class OutageReport {
  readonly #onError: (error: Error) => void;
  readonly #onOver: (outageMs: number) => void;
  readonly #reasons = new Set<string>();
  #since = 0;

  constructor(onError: (error: Error) => void, onOver: (outageMs: number) => void = () => undefined) {
    this.#onError = onError;
    this.#onOver = onOver;
  }

  get inOutage(): boolean {
    return this.#reasons.size > 0;
  }

  failed(error: Error): void {
    const reason = error instanceof HoldfastError ? error.code : error.message;
    if (this.#reasons.has(reason)) return;
    if (!this.inOutage) this.#since = systemClock.monotonic();
    this.#reasons.add(reason);
    this.#onError(error);
  }

  answered(): void {
    if (!this.inOutage) return;
    this.#reasons.clear();
    this.#onOver(Math.round(systemClock.monotonic() - this.#since));
  }
}
