// A settle that the store refuses for what it carries, such as a value above a limit of the server. Repeating it is in vain, and the
// other outcomes of the call are innocent. So each outcome is settled alone, and a substitute goes in the place of one that is refused.
import { HoldfastError, toError, type ErrorCode } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { SettleReply } from '../contract/index.js';

/** The store answered, changed nothing, and may take another call. The other codes say that it takes none at the moment. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['STORE_FAILED', 'PAYLOAD_TOO_LARGE', 'INVALID_PAYLOAD']);

export function isRefusal(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && !error.retryable && REFUSALS.has(error.code);
}

/** An outcome that the store takes in place of the one at `index`; undefined when there is nothing in that outcome to refuse. */
export type Substitute = (index: number, refusal: HoldfastError) => Outcome | undefined;

/** The store refused an outcome, and took this one for it. */
export interface Substituted {
  outcome: Outcome;
  refusal: HoldfastError;
}

interface SettledAlone<Reply> {
  reply: Reply;
  substituted?: Substituted;
}

export interface SingleCalls<Reply> {
  /** Settles one outcome under a number of its own. Rejects with the refusal, or with another error when the call was given up. */
  settle(outcome: Outcome): Promise<Reply>;
  substitute: Substitute;
  /** The store refuses even the substitute, so the trouble is the store's: waits, and rejects when it is time to give up. */
  trouble(error: Error): Promise<void>;
}

export interface OneByOne<Reply> {
  results: SettleReply['results'];
  substituted: Map<number, Substituted>;
  /** The reply of the last settle. */
  last: Reply;
}

/** One call after the other: a lane has one in flight. */
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
