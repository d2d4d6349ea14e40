// The states of a job and the moves between them. Every store keeps each job in exactly one of these states.
//
//   add ──► waiting ◄──────────────┐          delayed ──(due, promote)──► waiting
//     └───► delayed                │
//                                  │
//   waiting ──claim──► active ─────┼─ wait, release, stall, retry ──► waiting
//                        │         └─ delay, retry with backoff ───► delayed
//                        ├─ complete ──► completed ──retry──► waiting
//                        ├─ fail ──────► failed ─────retry──► waiting
//                        └─ children ──► waiting-children ──(released)──► waiting, delayed; `add` puts parents there too
//
// 'prioritized' is a waiting job with a priority above 0, and 'paused' is a waiting job of a paused queue. Users know these two names;
// they are derived on request and never stored.

export type StoredState = 'waiting' | 'delayed' | 'active' | 'completed' | 'failed' | 'waiting-children';

/** The result of `getState`. */
export type JobState = StoredState | 'prioritized' | 'unknown';

/** The values that the getters and counts accept. */
export type JobType = StoredState | 'prioritized' | 'paused' | 'wait' | 'repeat';

export type FinishedState = 'completed' | 'failed';

export function isFinished(state: string): state is FinishedState {
  return state === 'completed' || state === 'failed';
}

/** Returns the state as the getters show it. */
export function visibleState(job: { state: StoredState; priority: number }): JobState {
  return job.state === 'waiting' && job.priority > 0 ? 'prioritized' : job.state;
}
