// A worker's numbered calls to the store: one in flight at a time, repeated under the same number until the store has answered, so
// that a lost reply neither loses a finish nor leaves a claimed job behind.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import type { Session } from '../lock/session.js';
import { now, type Moment } from '../lock/trust.js';
import { systemClock } from '../runtime/clock.js';
import type { Outcome } from '../job/outcome.js';
import type { ClaimReply, ClaimRequest, SettleReply, Store } from '../store/contract.js';
import type { Tenure } from './tenure.js';

export type ClaimWish = Omit<ClaimRequest, 'session' | 'seq'>;

export interface CallReply extends SettleReply {
  session: Session;
  /** The moment before the call that was answered left. */
  sentAt: Moment;
  claimed?: ClaimReply;
  /** Some try had failed before: the store may hold for us what we do not know of. */
  retried: boolean;
}

export interface CallsOptions {
  queue: string;
  tenure: Tenure;
  ready(): Promise<Store>;
  /** Pause after an error that time alone does not heal. */
  retryDelayMs: number;
  onError(error: Error): void;
}

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;

export class Calls {
  readonly #options: CallsOptions;
  #last: Promise<unknown> = Promise.resolve();
  /** Set when the worker closes: how long a store that does not answer is still waited for. */
  #patienceMs: number | undefined;
  #onClosing: (() => void) | undefined;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  perform(outcomes: Outcome[], wish?: ClaimWish): Promise<CallReply> {
    const call = this.#last.then(() => this.#perform(outcomes, wish));
    this.#last = call.catch(() => undefined);
    return call;
  }

  /**
   * The worker closes. From now on a call that has nothing to deliver is not repeated, and one that has is given up when the store
   * has not taken it for `patienceMs`, so that closing comes to an end.
   */
  close(patienceMs: number): void {
    this.#patienceMs ??= patienceMs;
    this.#onClosing?.();
  }

  async #perform(outcomes: Outcome[], wish: ClaimWish | undefined): Promise<CallReply> {
    let numbered: { session: Session; seq: number } | undefined;
    let failingSince: number | undefined;
    for (let failures = 0; ; ) {
      try {
        const store = await this.#options.ready();
        if (numbered === undefined) {
          const session = await this.#options.tenure.session();
          numbered = { session, seq: this.#options.tenure.nextSeq() };
        }
        const sentAt = now(systemClock);
        const reply = await this.#patiently(this.#send(store, numbered.session, numbered.seq, outcomes, wish));
        return { ...reply, session: numbered.session, sentAt, retried: failures > 0 };
      } catch (thrown) {
        const error = toError(thrown);
        failures += 1;
        failingSince ??= systemClock.monotonic();
        this.#options.onError(error);
        await this.#pause(error, failures);
        if (this.#isOver(outcomes, failingSince)) {
          throw new HoldfastError('OUTCOME_UNKNOWN', `The store did not answer before the worker was closed: ${error.message}`, { cause: error });
        }
      }
    }
  }

  async #send(store: Store, session: Session, seq: number, outcomes: Outcome[], wish: ClaimWish | undefined): Promise<SettleReply> {
    const { queue } = this.#options;
    const claim = wish === undefined ? undefined : { ...wish, session: session.id, seq };
    if (outcomes.length > 0) return store.settle(queue, outcomes, { caller: session.id, seq }, claim);
    return claim === undefined ? { results: [] } : { results: [], claimed: await store.claim(queue, claim) };
  }

  #isOver(outcomes: Outcome[], failingSince: number): boolean {
    if (this.#patienceMs === undefined) return false;
    return outcomes.length === 0 || systemClock.monotonic() - failingSince >= this.#patienceMs;
  }

  /** A call that hangs is waited for as long as the worker is open, and for `patienceMs` once it closes. */
  async #patiently<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const impatience = new Promise<never>((_, reject) => {
      const arm = (): void => {
        const error = new HoldfastError('TIMEOUT', 'The store does not answer.', { retryable: true });
        timer ??= setTimeout(() => reject(error), this.#patienceMs);
      };
      if (this.#patienceMs === undefined) this.#onClosing = arm;
      else arm();
    });
    try {
      return await Promise.race([answer, impatience]);
    } finally {
      clearTimeout(timer);
      this.#onClosing = undefined;
    }
  }

  async #pause(error: Error, failures: number): Promise<void> {
    const grown = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 10));
    const closing = this.#patienceMs !== undefined;
    const ms = isRetryable(error) || closing ? grown : Math.max(grown, this.#options.retryDelayMs);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onClosing = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onClosing = undefined;
  }
}
