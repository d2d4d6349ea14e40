// The store contract: all that the rest of Holdfast knows about a store. Engines implement it, and the conformance suite in
// testing/ tests them against it. No other code talks to an engine.
//
// Rules for every verb:
// - A write verb takes a list (or names a bounded chunk), is atomic as a whole, and is durable when its promise resolves. Callers
//   cut lists to `capabilities.batch` where they can. Verbs whose work may exceed one call (`change` by selection,
//   `closeSessions`, `forget` with `all`, many renewals) may work in steps. Each step is atomic, and each item is done in one step.
// - Only the store's clock decides. Times that go in are durations; times that come out are durations or the store's epoch ms.
// - A lost lock is a result per item, never an exception. Exceptions are HoldfastErrors of the store itself (STORE_…). A call that
//   failed with a `retryable` one may or may not have been applied, so every write can be repeated: see `Call`.
// - An empty list does no I/O.
// - Replies are bounded by bytes (REPLY_BYTES in budget.ts). A verb that returns jobs, events or logs stops before the item that would
//   exceed the budget, but returns at least one. The caller asks again for the rest. Callers bound their requests in the same way.
// - A call concerns only the queue that it names, apart from families (the file `families`).
import type { Capabilities } from '../capabilities.js';
import type { StoreDescriptor } from '../descriptor.js';
import type { Adding } from './adding.js';
import type { Changing } from './changing.js';
import type { Claiming } from './claiming.js';
import type { Settling } from './settling.js';
import type { Sessions } from './sessions.js';
import type { Recovery } from './recovery.js';
import type { Locks } from './locks.js';
import type { Control } from './control.js';
import type { Families } from './families.js';
import type { Inspecting } from './inspecting.js';
import type { Scheduling } from './scheduling.js';
import type { Waking } from './waking.js';

export * from './adding.js';
export * from './call.js';
export * from './changing.js';
export * from './claiming.js';
export * from './control.js';
export * from './events.js';
export * from './families.js';
export * from './groups.js';
export * from './inspecting.js';
export * from './locks.js';
export * from './recovery.js';
export * from './scheduling.js';
export * from './sessions.js';
export * from './settling.js';
export * from './steps.js';
export * from './waking.js';

export interface Store
  extends Adding,
    Claiming,
    Settling,
    Sessions,
    Recovery,
    Locks,
    Control,
    Changing,
    Scheduling,
    Families,
    Inspecting,
    Waking {
  readonly capabilities: Capabilities;
  /** The library that talks to the engine, for `health()`: undefined where there is none, or before `open` has chosen it. */
  readonly driver?: string | undefined;
  /** The client that talks to the engine, for commands of the user; undefined where programs expect none, or while it is not connected. */
  readonly client?: object | undefined;
  /** How a thread reopens this store, as plain data; undefined when only this process can reach it. */
  describe(): StoreDescriptor | undefined;
  /** Connects, creates or migrates. Idempotent; every other verb may be called only after it. */
  open(): Promise<void>;
  /** Waits for the calls in flight, then releases the engine. Idempotent. Later calls reject with STORE_CLOSED. */
  close(): Promise<void>;
}
