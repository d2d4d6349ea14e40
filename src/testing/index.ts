// The public entry `holdfast/testing`: the suite that every store must pass, a store that fails on command, and a clock that the
// test moves. Together with the types of the contract it is all that the author of a store needs.
// The product imports nothing from here.

export {
  type ConformanceOptions,
  conformance,
  type Level,
  LEVELS,
  type StoreUnderTest,
  type TestCase,
  type TestRunner,
} from './conformance/index.js';
export type { Fault, FaultOptions, FaultRule } from './faults.js';
export { type AnsweredMoment, type CalledMoment, FaultyStore, type FaultyStoreOptions, type StoreVerb } from './faulty-store.js';
export { ManualClock, type ManualClockOptions } from './manual-clock.js';

export { type Clock, systemClock } from '../runtime/clock.js';
export {
  EVENT_VALUE_BYTES,
  EVENTS_BYTES_KEPT,
  isLargeValue,
  REPLY_BYTES,
  SHORT_VALUE_BYTES,
  withinReply,
} from '../store/budget.js';
export { type Capabilities, refuseTransaction } from '../store/capabilities.js';
export type { StoreDescriptor } from '../store/descriptor.js';
export type * from '../store/contract/index.js';
export { EVENTS_KEPT, STALLED_REASON } from '../store/contract/index.js';
export { type Claimant, roomUnderCap } from '../job/cap.js';
export { nextFence, tokenOf } from '../job/lock.js';
export { type LossFound, type LostBy, lostByText } from '../job/lost-by.js';
export { keepOnFail } from '../job/options.js';
export type { Keep, Outcome, SettleStatus } from '../job/outcome.js';
export type { ClaimedJob, JobRecord, NewJob } from '../job/record.js';
export type { FinishedState, StoredState } from '../job/state.js';
export { type ErrorCode, type ErrorDetails, HoldfastError } from '../errors.js';
export { interruptAfterStep } from './interrupt.js';
