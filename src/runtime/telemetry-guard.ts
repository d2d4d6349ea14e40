// Stands between the user's telemetry object and the work that it watches. An error of the telemetry, thrown or as a promise that rejects,
// is reported, and goes no further.
import { toError } from '../errors.js';

export class TelemetryGuard {
  readonly #onError: (error: Error) => void;

  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  /** Calls the telemetry. Returns undefined if it throws. */
  guarded<V>(call: () => V): V | undefined {
    try {
      return this.watched(call());
    } catch (error) {
      this.#onError(toError(error));
      return undefined;
    }
  }

  /** Returns the value. If it is a promise that rejects, reports the reason, unless that is an error of `work`. */
  watched<V>(value: V, work?: WorkOnce<unknown>): V {
    if (isThenable(value)) Promise.resolve(value).catch((reason: unknown) => this.#report(reason, work));
    return value;
  }

  /** Runs `work` exactly once: inside `enter` or, if that returns or throws without a call, after it. Returns or throws what `work` does. */
  protected inside<V>(enter: (work: () => V) => unknown, work: () => V): V {
    const once = new WorkOnce(work);
    try {
      this.watched(
        enter(() => once.result()),
        once,
      );
    } catch (error) {
      this.#report(error, once);
    }
    return once.result();
  }

  /** The telemetry may pass on an error of the work. The caller of the work gets that error already. */
  #report(reason: unknown, work: WorkOnce<unknown> | undefined): void {
    if (work?.hasError(reason) !== true) this.#onError(toError(reason));
  }
}

/** Runs on the first call, and keeps its result for the others. */
class WorkOnce<V> {
  readonly #work: () => V;
  #outcome: { value: V } | { error: unknown } | undefined;
  #rejection: { error: unknown } | undefined;

  constructor(work: () => V) {
    this.#work = work;
  }

  result(): V {
    this.#outcome ??= this.#run();
    if ('error' in this.#outcome) throw this.#outcome.error;
    return this.#outcome.value;
  }

  hasError(error: unknown): boolean {
    const failed = this.#outcome !== undefined && 'error' in this.#outcome ? this.#outcome : this.#rejection;
    return failed !== undefined && failed.error === error;
  }

  #run(): { value: V } | { error: unknown } {
    try {
      const value = this.#work();
      // The telemetry gets the promise after this line, so the rejection is known here before the telemetry can pass it on.
      if (isThenable(value)) Promise.resolve(value).catch((error: unknown) => (this.#rejection = { error }));
      return { value };
    } catch (error) {
      return { error };
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
