// Runs end: the outcome of a job, and the next claim in the same step.
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import type { Call } from './call.js';
import type { ClaimReply, ClaimRequest } from './claiming.js';

export interface Settling {
  /**
   * Carries out the outcomes and then, in the same atomic step and round trip, the claim if one is given.
   * With a `call`, a repetition answers as the first time, even for jobs that were removed on finishing. Without one (a lock
   * holder that is not a worker) a repeated finish is recognised by its token as long as the job is kept.
   */
  settle(queue: string, outcomes: Outcome[], call?: Call, claim?: ClaimRequest): Promise<SettleReply>;
}

export interface SettleReply {
  /** One per outcome, in order. */
  results: SettleStatus[];
  claimed?: ClaimReply;
}
