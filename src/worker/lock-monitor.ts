// Shows the lock thread of a worker to users that monitor it: `worker.lockManagerThread`.
import { Emitter } from '../runtime/emitter.js';

export interface LockMonitorEvents {
  lockExtended: [jobIds: string[]];
  lockRenewalFailed: [jobIds: string[]];
  stalledJobs: [jobIds: string[]];
  /** The event loop was blocked for `blockedMs`. Emitted when the loop is free again. */
  loopBlocked: [blockedMs: number];
  error: [error: Error];
}

export class LockMonitor extends Emitter<LockMonitorEvents> {
  readonly #jobIds: () => string[];
  #running = true;

  constructor(jobIds: () => string[]) {
    super();
    this.#jobIds = jobIds;
  }

  /** False after close, and while the event loop renews because the thread does not run. */
  isRunning(): boolean {
    return this.#running;
  }

  getMonitoredJobs(): string[] {
    return this.#jobIds();
  }

  setRunning(running: boolean): void {
    this.#running = running;
  }
}
