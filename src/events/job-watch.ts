// The listeners that wait for the end of a job, in a map by job id: thousands may wait on one QueueEvents, and an event concerns one job.
import type { JobEnd } from '../handle/waiting.js';

interface TellArgs {
  jobId: string;
  returnvalue?: unknown;
  failedReason?: string;
  valueGone?: true;
}

type Listener = (end: JobEnd) => void;

export class JobWatch {
  readonly #listeners = new Map<string, Set<Listener>>();

  watch(jobId: string, listener: Listener): () => void {
    const known = this.#listeners.get(jobId) ?? new Set();
    this.#listeners.set(jobId, known.add(listener));
    return () => {
      known.delete(listener);
      if (known.size === 0 && this.#listeners.get(jobId) === known) this.#listeners.delete(jobId);
    };
  }

  isWatched(jobId: string): boolean {
    return this.#listeners.has(jobId);
  }

  /** Calls the job's listeners. Takes the arguments that listeners of the event get. */
  emitStored(name: string, [args]: unknown[]): void {
    if (this.#listeners.size === 0 || (name !== 'completed' && name !== 'failed' && name !== 'removed')) return;
    const { jobId, returnvalue, failedReason, valueGone } = args as TellArgs;
    const listeners = this.#listeners.get(jobId);
    if (listeners === undefined) return;
    const end: JobEnd =
      name === 'completed'
        ? valueGone
          ? { kind: 'result gone' }
          : { kind: 'completed', value: returnvalue }
        : name === 'failed'
          ? { kind: 'failed', reason: failedReason ?? '' }
          : { kind: 'removed' };
    // Each listener stops watching when it is called.
    for (const listener of listeners) listener(end);
  }

  close(): void {
    for (const listeners of this.#listeners.values()) for (const listener of listeners) listener({ kind: 'closed' });
  }
}
