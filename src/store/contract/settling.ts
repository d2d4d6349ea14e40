// Settling: how runs ended, and the next claim in the same step.
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import type { Call } from './call.js';
import type { ClaimReply, ClaimRequest } from './claiming.js';

export interface Settling {
  /**
   * Applies the outcomes and then, in the same atomic step and round trip, the claim if there is one.
   * With a `call`, a repetition returns the first reply, even for jobs that were removed on finishing, and if the repetition has fewer
   * outcomes: a caller repeats a call that ran out of time with the first half of its outcomes. Without one (a lock client is not
   * a worker), the store recognises a repeated finish by its token while the job exists.
   * With a `transaction` of the caller (capability `transactions`), the outcomes take effect when it commits, or never. Such a call has
   * neither a `call` nor a claim. Until the transaction ends, other calls for these jobs may wait for it.
   */
  settle(queue: string, outcomes: Outcome[], call?: Call, claim?: ClaimRequest, transaction?: unknown): Promise<SettleReply>;
}

export interface SettleReply {
  /** One per outcome, in order. */
  results: SettleStatus[];
  claimed?: ClaimReply;
}
