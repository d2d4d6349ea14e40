// The store contract: all that the rest of Holdfast knows about a store. Engines implement it, the conformance suite in
// testing/ holds them to it, nothing else talks to an engine.
//
// What holds for every verb:
// - A write verb takes a list (or names a bounded chunk), is atomic as a whole, and is durable when its promise resolves. Callers
//   cut lists to `capabilities.batch` wherever they may. What works through more than one call should hold (`clear`, `requeue`,
//   `closeSessions`, many `renew`als) may go in steps, each of them atomic, and no item is ever done in part.
// - Only the store's clock decides. Times that go in are durations; times that come out are durations or the store's epoch ms.
// - Losing a lock is a result per item, never an exception. Exceptions are HoldfastErrors of the store itself (STORE_…);
//   `retryable` ones may or may not have happened, so every write can be repeated: see `Call`.
// - An empty list does no I/O.
// - Replies are bounded by bytes (REPLY_BYTES in budget.ts): a verb that returns jobs, events or logs stops before the item that would exceed the
//   budget, but never before the first. The caller asks again for the rest. Callers bound what they send in the same way.
// - Everything is scoped to the queue that it names.
import type { Capabilities } from '../capabilities.js';
import type { StoreDescriptor } from '../descriptor.js';
import type { Adding } from './adding.js';
import type { Claiming } from './claiming.js';
import type { Settling } from './settling.js';
import type { Sessions } from './sessions.js';
import type { Recovery } from './recovery.js';
import type { Locks } from './locks.js';
import type { Control } from './control.js';
import type { Inspecting } from './inspecting.js';
import type { Waking } from './waking.js';

export * from './adding.js';
export * from './call.js';
export * from './claiming.js';
export * from './control.js';
export * from './events.js';
export * from './inspecting.js';
export * from './locks.js';
export * from './recovery.js';
export * from './sessions.js';
export * from './settling.js';
export * from './waking.js';

export interface Store extends Adding, Claiming, Settling, Sessions, Recovery, Locks, Control, Inspecting, Waking {
  readonly capabilities: Capabilities;
  /** The library that talks to the engine, for `health()`: undefined where there is none, or before `open` has chosen it. */
  readonly driver?: string | undefined;
  /** How a thread reopens this store, as plain data; undefined when only this process can reach it. */
  describe(): StoreDescriptor | undefined;
  /** Connects, creates or migrates. Idempotent; every other verb may be called only after it. */
  open(): Promise<void>;
  /** Lets everything in flight end, then lets go of the engine. Idempotent. Later calls reject with STORE_CLOSED. */
  close(): Promise<void>;
}
