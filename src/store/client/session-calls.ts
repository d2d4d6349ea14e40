// Numbered calls of a session to the store: one in flight at a time in each lane, repeated under the same number until the store has
// answered, so that a lost reply neither loses a finish nor leaves a claimed job behind.
import { HoldfastError, isRetryable, toError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import { systemClock } from '../../runtime/clock.js';
import { OutageReport } from '../../runtime/outage-report.js';
import { ReplyTimeout } from '../../runtime/reply-timeout.js';
import type { ClaimReply, ClaimRequest, SettleReply, Store } from '../contract/index.js';
import { Outage } from './outage.js';
import { isRefusal, settleOneByOne, type Substitute, type Substituted } from './refusal.js';
import type { Session } from '../../session/session.js';
import type { SessionOwner } from '../../session/session-owner.js';
import { now, type Moment } from '../../session/trust.js';
import { clearTimeout, setTimeout } from '../../runtime/timers.js';

export type ClaimTerms = Omit<ClaimRequest, 'session' | 'seq' | 'lane'>;

export interface CallReply {
  results: SettleReply['results'];
  session: Session;
  /** The moment before the first try left: the store may have done the work then, and timed locks run from there. */
  sentAt: Moment;
  seq: number;
  claimed: ClaimReply | undefined;
  /** Some try had failed before: the store may hold for us what we do not know of. */
  retried: boolean;
  /** Outcomes that the store refused for ever, by their index, and what it took in their places. */
  substituted?: ReadonlyMap<number, Substituted>;
}

export interface CallWitness {
  asked(): void;
  /** `withClaim`: the store was asked for jobs, and the session was good for them. */
  answered(withClaim: boolean): void;
  failed(error: Error): void;
}

export interface SessionCallsOptions {
  queue: string;
  /** Who calls, for messages: 'worker', 'queue'. */
  who: string;
  owner: SessionOwner;
  /** Who wants to know whether the calls are answered. */
  health?: CallWitness;
  ready(): Promise<Store>;
  /** A call that was not answered for so long is made again, under its number. */
  hangMs: number;
  /** Pause after an error that time alone does not heal. */
  retryDelayMs: number;
  onError(error: Error): void;
  /** The store replies again, after an outage that went to `onError`. */
  onRecovered?(outageMs: number): void;
}

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;
/** How long closing waits for a call that has nothing to deliver. */
const CLAIM_PATIENCE_MS = 1000;

/** A call has got its number, and with it the moment before it first left. */
interface Numbered {
  session: Session;
  seq: number;
  sentAt: Moment;
}

class Lane {
  readonly number: number;
  readonly outage: Outage;
  /** How long the call in flight is waited for. */
  readonly patience = new ReplyTimeout();
  /** Whether the call in flight has something to deliver. */
  delivers = false;
  /** SessionCalls of this lane that have not come to their end. */
  open = 0;
  last: Promise<unknown> = Promise.resolve();

  constructor(number: number, outage: Outage) {
    this.number = number;
    this.outage = outage;
  }

  end(): void {
    this.patience.end();
    this.outage.end();
  }
}

export class SessionCalls {
  readonly #options: SessionCallsOptions;
  readonly #lanes: Lane[] = [];
  readonly #unanswered = new Set<{ session: Session; seq: number }>();
  /** Set when its owner closes: how long a store that does not answer is still waited for. */
  #patienceMs: number | undefined;
  readonly #onClosing = new Set<() => void>();
  readonly #report: OutageReport;
  #store: Store | undefined;
  #ended = false;

  constructor(options: SessionCallsOptions) {
    this.#options = options;
    this.#report = new OutageReport(options.onError, options.onRecovered);
  }

  get who(): string {
    return this.#options.who;
  }

  /** The store does not answer, and `onError` was told so. */
  get inOutage(): boolean {
    return this.#report.inOutage;
  }

  /**
   * Rejects when the store refuses the outcomes for what they carry: nothing was changed then. With a `substitute`, it settles them one by
   * one instead, and claims in a call of its own.
   */
  perform(outcomes: Outcome[], wish?: ClaimTerms, number = 0, substitute?: Substitute): Promise<CallReply> {
    if (this.#ended) {
      const { who, queue } = this.#options;
      return Promise.reject(new HoldfastError('CLOSED', `The ${who} of "${queue}" is closed; make a new one.`));
    }
    const lane = (this.#lanes[number] ??= new Lane(number, new Outage(this.#report)));
    // Behind others, or at once.
    const perform = (): Promise<CallReply> => this.#perform(lane, outcomes, wish, substitute);
    const call = lane.open > 0 ? lane.last.then(perform) : perform();
    const ended = (): void => {
      lane.open -= 1;
    };
    lane.open += 1;
    lane.last = call.then(ended, ended);
    return call;
  }

  /**
   * Its owner closes. From now on a call that has nothing to deliver is not repeated, and one that has is given up when the store
   * has not taken it for `patienceMs`, so that closing comes to an end.
   */
  close(patienceMs: number): void {
    this.#patienceMs ??= patienceMs;
    for (const { patience, delivers } of this.#lanes) patience.shorten(this.#patience(delivers));
    for (const hurry of [...this.#onClosing]) hurry();
  }

  /** Numbers of calls of a session that are in flight: what they were granted is on its way. */
  unanswered(session: Session): Set<number> {
    return new Set([...this.#unanswered].filter((call) => call.session === session).map(({ seq }) => seq));
  }

  /** Resolves when every call so far has come to its end. */
  async idle(): Promise<void> {
    for (const lane of this.#lanes) {
      for (let last: unknown; last !== lane.last; ) {
        last = lane.last;
        await last;
      }
    }
  }

  /** Later calls are refused. */
  end(): void {
    this.#ended = true;
    for (const lane of this.#lanes) lane.end();
  }

  async #perform(lane: Lane, outcomes: Outcome[], wish?: ClaimTerms, substitute?: Substitute): Promise<CallReply> {
    const { health } = this.#options;
    const { outage } = lane;
    const delivers = outcomes.length > 0;
    health?.asked();
    outage.asked();
    let numbered: Numbered | undefined;
    let failingSince: number | undefined;
    for (let failures = 0; ; ) {
      try {
        const { store, session } = this.#reached() ?? (await this.patiently(this.#reach(), delivers));
        if (numbered === undefined) {
          numbered = { session, seq: session.nextSeq(), sentAt: now(systemClock) };
          this.#unanswered.add(numbered);
        }
        lane.delivers = delivers;
        const answer = this.#send(store, lane.number, numbered, outcomes, wish);
        const { results, claimed } = await lane.patience.wait(this.#patience(delivers), answer, unanswered);
        outage.answered();
        this.#unanswered.delete(numbered);
        if (claimed !== undefined && claimed.jobs.length > 0) numbered.session.granted(numbered.sentAt);
        health?.answered(claimed?.sessionAlive === true);
        const { session: caller, seq, sentAt } = numbered;
        return { results, claimed, session: caller, seq, sentAt, retried: failures > 0 };
      } catch (thrown) {
        const error = toError(thrown);
        if (delivers && isRefusal(error)) {
          if (numbered !== undefined) this.#unanswered.delete(numbered);
          return await this.#refused(lane, outcomes as [Outcome, ...Outcome[]], wish, substitute, error);
        }
        failures += 1;
        failingSince ??= systemClock.monotonic();
        try {
          await this.#failed(lane, error, failures, failingSince, delivers);
        } catch (givenUp) {
          if (numbered !== undefined) this.#unanswered.delete(numbered);
          throw givenUp;
        }
      }
    }
  }

  /** Reports a failed try and waits. Rejects when the call is given up. */
  async #failed(lane: Lane, error: Error, failures: number, failingSince: number, delivers: boolean): Promise<void> {
    this.#options.health?.failed(error);
    lane.outage.failed(error);
    await this.#pause(error, failures);
    if (!this.#isOver(error, delivers, failingSince)) return;
    lane.outage.givenUp();
    const message = `The store did not answer before the ${this.#options.who} was closed: ${error.message}`;
    throw new HoldfastError('OUTCOME_UNKNOWN', message, { cause: error });
  }

  /**
   * The number of the refused call is used up: should an earlier try of it still arrive, then the store takes it for a straggler. An
   * earlier try that was carried out is recognised by the tokens of its outcomes, and what it claimed is found by reconciling.
   */
  async #refused(
    lane: Lane,
    outcomes: [Outcome, ...Outcome[]],
    wish: ClaimTerms | undefined,
    substitute: Substitute | undefined,
    refusal: Error,
  ): Promise<CallReply> {
    const { health } = this.#options;
    lane.outage.givenUp();
    try {
      if (substitute === undefined) throw refusal;
      const failingSince = systemClock.monotonic();
      let failures = 0;
      const { results, substituted, last } = await settleOneByOne<CallReply>(outcomes, {
        settle: (outcome) => this.#perform(lane, [outcome]),
        substitute,
        trouble: (error) => this.#failed(lane, error, ++failures, failingSince, true),
      });
      const claimed = wish === undefined || this.#patienceMs !== undefined ? undefined : this.#perform(lane, [], wish);
      // A claim that is given up, because the owner closes meanwhile, must not take the results with it.
      const reply = (await claimed?.catch(() => undefined)) ?? last;
      return { ...reply, results, substituted, retried: true };
    } finally {
      health?.answered(false);
    }
  }

  /** What almost every call finds: waiting for it in vain is a timer and some promises, 1 of the 8.7 µs that a call takes here. */
  #reached(): { store: Store; session: Session } | undefined {
    const store = this.#store;
    const session = this.#options.owner.current;
    return store === undefined || session === undefined ? undefined : { store, session };
  }

  async #reach(): Promise<{ store: Store; session: Session }> {
    this.#store = await this.#options.ready();
    return { store: this.#store, session: await this.#options.owner.session() };
  }

  #send(
    store: Store,
    lane: number,
    { session: { id }, seq }: Numbered,
    outcomes: Outcome[],
    wish: ClaimTerms | undefined,
  ): Promise<SettleReply> {
    const { queue } = this.#options;
    const claim = wish === undefined ? undefined : requestOf(wish, id, seq, lane);
    if (outcomes.length > 0) return store.settle(queue, outcomes, { caller: id, seq, lane }, claim);
    return claim === undefined ? Promise.resolve({ results: [] }) : store.claim(queue, claim).then(withoutResults);
  }

  #isOver(error: Error, delivers: boolean, failingSince: number): boolean {
    if (this.#patienceMs === undefined) return false;
    // A store that was closed does not come back.
    const gone = error instanceof HoldfastError && error.code === 'STORE_CLOSED';
    return gone || !delivers || systemClock.monotonic() - failingSince >= this.#patienceMs;
  }

  /** Rejects when no answer comes: whoever waits for ever in silence helps nobody, and a numbered call can be repeated. */
  async patiently<T>(answer: Promise<T>, delivers: boolean): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let giveUp: (error: Error) => void;
    const impatience = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const arm = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => giveUp(unanswered()), this.#patience(delivers));
    };
    arm();
    this.#onClosing.add(arm);
    try {
      return await Promise.race([answer, impatience]);
    } finally {
      clearTimeout(timer);
      this.#onClosing.delete(arm);
    }
  }

  #patience(delivers: boolean): number {
    if (this.#patienceMs === undefined) return this.#options.hangMs;
    return delivers ? this.#patienceMs : Math.min(this.#patienceMs, CLAIM_PATIENCE_MS);
  }

  async #pause(error: Error, failures: number): Promise<void> {
    const grown = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 10));
    const closing = this.#patienceMs !== undefined;
    const ms = isRetryable(error) || closing ? grown : Math.max(grown, this.#options.retryDelayMs);
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        clearTimeout(timer);
        this.#onClosing.delete(goOn);
        resolve();
      };
      const timer = setTimeout(goOn, ms);
      this.#onClosing.add(goOn);
    });
  }
}

function unanswered(): HoldfastError {
  return new HoldfastError('TIMEOUT', 'The store does not answer.', { retryable: true });
}

/** Field by field: `{ ...wish, ...numbered }` took as long as all the rest of a call's bookkeeping, 12 µs. */
function requestOf({ count, by, timedMs, limit, jobIds }: ClaimTerms, session: string, seq: number, lane: number): ClaimRequest {
  const request: ClaimRequest = { session, seq, lane, count };
  if (by !== undefined) request.by = by;
  if (timedMs !== undefined) request.timedMs = timedMs;
  if (limit !== undefined) request.limit = limit;
  if (jobIds !== undefined) request.jobIds = jobIds;
  return request;
}

function withoutResults(claimed: ClaimReply): SettleReply {
  return { results: [], claimed };
}
