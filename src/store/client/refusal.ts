// Handles a settle that the store refuses because of its content, such as a value above a limit of the server. A retry would fail again,
// and the other outcomes of the call are not at fault. So each outcome is settled alone, and a substitute replaces a refused one.
import { HoldfastError, toError, type ErrorCode } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { SettleReply } from '../contract/index.js';

/** Codes that mean: the store replied, changed nothing, and may accept another call. The other codes mean that it accepts none now. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['STORE_FAILED', 'PAYLOAD_TOO_LARGE', 'INVALID_PAYLOAD']);

export function isRefusal(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && !error.retryable && REFUSALS.has(error.code);
}

/** Returns an outcome to settle instead of the one at `index`; undefined if that outcome has nothing that could be refused. */
export type Substitute = (index: number, refusal: HoldfastError) => Outcome | undefined;

/** A refused outcome's substitute, which the store accepted. */
export interface Substituted {
  outcome: Outcome;
  refusal: HoldfastError;
}

interface SettledAlone<Reply> {
  reply: Reply;
  substituted?: Substituted;
}

export interface SingleCalls<Reply> {
  /** Settles one outcome under its own number. Rejects with the refusal, or with another error if the call was given up. */
  settle(outcome: Outcome): Promise<Reply>;
  substitute: Substitute;
  /** Called when the store refuses even the substitute, so the outcome is not the cause. Waits; rejects when it is time to give up. */
  trouble(error: Error): Promise<void>;
}

export interface OneByOne<Reply> {
  results: SettleReply['results'];
  substituted: Map<number, Substituted>;
  /** The reply of the last settle. */
  last: Reply;
}

/** Settles one outcome after the other, because a lane has only one call in flight. */
export async function settleOneByOne<Reply extends Pick<SettleReply, 'results'>>(
  outcomes: [Outcome, ...Outcome[]],
  calls: SingleCalls<Reply>,
): Promise<OneByOne<Reply>> {
  const results: SettleReply['results'] = [];
  const substituted = new Map<number, Substituted>();
  let last: Reply | undefined;
  for (const [index, outcome] of outcomes.entries()) {
    const alone = await settleAlone(outcome, index, calls);
    results.push(alone.reply.results[0] ?? 'missing');
    if (alone.substituted !== undefined) substituted.set(index, alone.substituted);
    last = alone.reply;
  }
  return { results, substituted, last: last as Reply };
}

async function settleAlone<Reply>(
  outcome: Outcome,
  index: number,
  { settle, substitute, trouble }: SingleCalls<Reply>,
): Promise<SettledAlone<Reply>> {
  for (;;) {
    let failure: unknown;
    try {
      return { reply: await settle(outcome) };
    } catch (refusal) {
      if (!isRefusal(refusal)) throw refusal;
      const other = substitute(index, refusal);
      failure = refusal;
      try {
        if (other !== undefined) return { reply: await settle(other), substituted: { outcome: other, refusal } };
      } catch (again) {
        if (!isRefusal(again)) throw again;
        failure = again;
      }
    }
    await trouble(toError(failure));
  }
}
