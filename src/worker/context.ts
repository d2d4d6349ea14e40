// The context of a worker: what its stations share. It holds no station that claims, runs or settles jobs, so that each of those can be
// read without the others; stations.ts says which station knows which.
import type { LockTable } from '../session/lock-table.js';
import type { SessionOwner } from '../session/session-owner.js';
import type { SessionCalls } from '../store/client/session-calls.js';
import type { Store } from '../store/contract/index.js';
import type { AnyWorkerEmitter } from './events.js';
import type { Health } from './health.js';
import type { Lifecycle } from './lifecycle.js';
import type { LockMonitor } from './lock-monitor.js';
import type { CheckedWorkerOptions } from './options.js';
import type { QueueSetup } from './queue-setup.js';
import type { Slots } from './slots.js';

export interface WorkerContext {
  /** The name of the queue, as the user gave it. */
  readonly name: string;
  /** The name of the queue in the store. */
  readonly queue: string;
  /** `worker.opts`: the user sees them, and the setters of the worker change them. */
  readonly opts: CheckedWorkerOptions;
  /** The worker, as the emitter of its events. */
  readonly emitter: AnyWorkerEmitter;
  readonly lifecycle: Lifecycle;
  readonly slots: Slots;
  /** The locks that the worker holds. */
  readonly table: LockTable;
  /** Owns the worker's session. */
  readonly owner: SessionOwner;
  /** Numbered calls of the session to the store. */
  readonly calls: SessionCalls;
  readonly health: Health;
  /** The settings of the queue that the options `group` and `metrics` ask for. */
  readonly queueSetup: QueueSetup;
  /** Undefined if locks are renewed on the event loop. */
  readonly monitor: LockMonitor | undefined;
  /** Returns the open store. */
  ready(): Promise<Store>;
  /** Gives up the worker's share of the store. */
  release(): Promise<void>;
}
