// Numbered calls of a session to the store. Each lane has one call in flight, which is repeated under the same number until the store
// replies. So a lost reply neither loses a settle nor leaves a claimed job behind. Workers and lock clients use it.
import { HoldfastError, closedError, isLate, isRetryable, toError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import { systemClock } from '../../runtime/clock.js';
import { OutageReport } from '../../runtime/outage-report.js';
import { retryPauseMs } from '../../runtime/retry-pause.js';
import { ReplyTimeout } from '../../runtime/reply-timeout.js';
import { untilDone } from '../../runtime/until-done.js';
import type { ClaimReply, ClaimRequest, SettleReply, Store } from '../contract/index.js';
import { Outage } from './outage.js';
import { isRefusal, settleOneByOne, type Substitute, type Substituted } from './refusal.js';
import type { Session } from '../../session/session.js';
import type { SessionOwner } from '../../session/session-owner.js';
import { between, now, type Moment } from '../../session/trust.js';
import { clearTimeout, setTimeout } from '../../runtime/timers.js';

export type ClaimTerms = Omit<ClaimRequest, 'session' | 'seq' | 'lane'>;

export interface CallReply {
  results: SettleReply['results'];
  session: Session;
  /** The moment before the first try was sent. The store may have done the work then, so timed locks count from there. */
  sentAt: Moment;
  seq: number;
  claimed: ClaimReply | undefined;
  /** An earlier try failed: the store may hold jobs for us that we do not know of. */
  retried: boolean;
  /** The call was stuck, and the session has given up the locks of what it claimed. */
  givenUp: boolean;
  /** Outcomes that the store refused for good, by index, with the outcomes that it accepted instead. */
  substituted?: ReadonlyMap<number, Substituted>;
}

export interface CallWitness {
  asked(): void;
  /** `withClaim`: the call asked for jobs, and the session was alive. */
  answered(withClaim: boolean): void;
  failed(error: Error): void;
}

/** A call of a session that the store has not accepted for as long as a lock lasts. */
export interface StuckCall {
  session: Session;
  seq: number;
  outcomes: readonly Outcome[];
}

export interface SessionCallsOptions {
  queue: string;
  /** Names the caller in messages: 'worker', 'queue'. */
  who: string;
  owner: SessionOwner;
  /** Learns whether the store replies to the calls. */
  health?: CallWitness;
  ready(): Promise<Store>;
  /**
   * Called before a claim gets its number. Undefined: the session may claim. Otherwise the call waits, and if the result is false, it goes
   * without the claim.
   */
  prepare?(session: Session): Promise<boolean> | undefined;
  /** A call without a reply for this long, in ms, is repeated under its number. */
  hangMs: number;
  /**
   * Called again and again while a call is stuck. The call goes on. Returns true if the session gives up the locks that the call would
   * release, and those that it claims.
   */
  onStuck?(call: StuckCall): boolean;
  /** Pause, in ms, after an error that will not heal with time. */
  retryDelayMs: number;
  onError(error: Error): void;
  /** The store replies again, after an outage that went to `onError`. */
  onRecovered?(outageMs: number): void;
}

/** The shortest time between two reports of a stuck call, in ms. Tries follow one another sooner. */
const STUCK_MS = 1000;

/** How long closing waits, in ms, for a call that has no outcomes to deliver. */
const CLAIM_TIMEOUT_MS = 1000;

/** A call that has its number: its session, and the moment before the first try was sent. */
interface Numbered {
  session: Session;
  seq: number;
  sentAt: Moment;
}

/** The outcomes of a call. */
interface Delivery {
  outcomes: Outcome[];
  substitute?: Substitute | undefined;
  /** When the first call with these outcomes was sent, if it is not this one. */
  since?: Moment | undefined;
}

class Lane {
  readonly number: number;
  readonly outage: Outage;
  /** Timeout of the call in flight. */
  readonly timeout = new ReplyTimeout();
  /** True if the call in flight has outcomes to deliver. */
  delivers = false;
  /** The call in flight, from its number to its reply. */
  unanswered: Numbered | undefined;
  /** The session has given up the locks of the call in flight. */
  givenUp = false;
  /** Runs from the first failure of a call to its reply. */
  stuckTimer: NodeJS.Timeout | undefined;
  /** Number of calls of this lane that have not ended. */
  open = 0;
  last: Promise<unknown> = Promise.resolve();

  constructor(number: number, outage: Outage) {
    this.number = number;
    this.outage = outage;
  }

  /** The call in flight has a reply, or was given up. */
  landed(): void {
    this.unanswered = undefined;
    if (this.stuckTimer === undefined) return;
    clearTimeout(this.stuckTimer);
    this.stuckTimer = undefined;
    this.givenUp = false;
  }

  end(): void {
    this.timeout.end();
    this.outage.end();
  }
}

export class SessionCalls {
  readonly #options: SessionCallsOptions;
  readonly #lanes: Lane[] = [];
  /** Set when the owner closes: how long to wait for a store that does not reply, in ms. */
  #closeTimeoutMs: number | undefined;
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

  /** True if the store does not reply and that was reported to `onError`. */
  get inOutage(): boolean {
    return this.#report.inOutage;
  }

  /**
   * Sends outcomes and a claim as one call. Rejects if the store refuses the outcomes because of their content; then nothing was changed.
   * With a `substitute`, the outcomes are settled one by one instead, and the claim gets its own call.
   */
  perform(outcomes: Outcome[], terms?: ClaimTerms, number = 0, substitute?: Substitute): Promise<CallReply> {
    if (this.#ended) {
      const { who, queue } = this.#options;
      return Promise.reject(closedError(`The ${who} of "${queue}"`));
    }
    const lane = (this.#lanes[number] ??= new Lane(number, new Outage(this.#report)));
    // The call waits for the calls before it in its lane, or starts at once.
    const before = lane.open > 0 ? lane.last : undefined;
    const call = this.#perform(lane, { outcomes, substitute }, terms, before);
    const ended = (): void => {
      lane.open -= 1;
    };
    lane.open += 1;
    lane.last = call.then(ended, ended);
    return call;
  }

  /**
   * Called when the owner closes. From now on a call without outcomes is not repeated. A call with outcomes is given up if the store
   * has not accepted it for `timeoutMs`, so that closing comes to an end.
   */
  close(timeoutMs: number): void {
    this.#closeTimeoutMs ??= timeoutMs;
    for (const { timeout, delivers } of this.#lanes) timeout.shorten(this.#timeoutMs(delivers));
    for (const hurry of [...this.#onClosing]) hurry();
  }

  /** For how many ms the oldest call has had no reply whose locks were given up; 0 if there is none. */
  get stuckMs(): number {
    const ages = this.#lanes.map(({ unanswered, givenUp }) =>
      givenUp && unanswered ? between(unanswered.sentAt, now(systemClock)) : 0,
    );
    return Math.max(0, ...ages);
  }

  /** Returns the numbers of the session's calls in flight. Jobs granted to them may be on their way. */
  unanswered(session: Session): Set<number> {
    const calls = this.#lanes.flatMap(({ unanswered: call }) => (call?.session === session ? [call.seq] : []));
    return new Set(calls);
  }

  /** Resolves when every call so far has ended. */
  async idle(): Promise<void> {
    for (const lane of this.#lanes) {
      for (let last: unknown; last !== lane.last; ) {
        last = lane.last;
        await last;
      }
    }
  }

  /** Refuses later calls. */
  end(): void {
    this.#ended = true;
    for (const lane of this.#lanes) lane.end();
  }

  async #perform(lane: Lane, delivery: Delivery, terms?: ClaimTerms, before?: Promise<unknown>): Promise<CallReply> {
    if (before !== undefined) await before;
    const { health, prepare } = this.#options;
    const { outage } = lane;
    const { outcomes } = delivery;
    const delivers = outcomes.length > 0;
    let some = outcomes;
    let claim = terms;
    health?.asked();
    outage.asked();
    let numbered: Numbered | undefined;
    let failingSince: number | undefined;
    const send = async (): Promise<CallReply> => {
      const { store, session } = this.#reached() ?? (await this.withTimeout(this.#reach(), delivers));
      if (numbered === undefined) {
        const prepared = claim === undefined ? undefined : prepare?.(session);
        if (prepared !== undefined) {
          if (!(await this.withTimeout(prepared, delivers))) claim = undefined;
          return send();
        }
        numbered = { session, seq: session.nextSeq(), sentAt: now(systemClock) };
        lane.unanswered = numbered;
      }
      lane.delivers = delivers;
      const answer = this.#send(store, lane.number, numbered, some, claim);
      const { results, claimed } = await lane.timeout.wait(this.#timeoutMs(delivers), answer, unanswered);
      outage.answered();
      const { givenUp } = lane;
      lane.landed();
      // It was asked for fewer jobs. The reply may be that to an earlier try, which asked for more of them.
      if (claimed !== undefined && claim !== undefined && claim !== terms && claimed.jobs.length >= claim.count)
        claimed.more = true;
      if (claimed !== undefined && claimed.jobs.length > 0) numbered.session.granted(numbered.sentAt);
      health?.answered(claimed?.sessionAlive === true);
      const { session: caller, seq, sentAt } = numbered;
      return { results, claimed, session: caller, seq, sentAt, retried: failingSince !== undefined, givenUp };
    };
    const failed = async (thrown: unknown, failures: number): Promise<void> => {
      const error = toError(thrown);
      if (delivers && isRefusal(error)) throw error;
      // The store would run out of time again, so ask for half as much. If it has carried out an earlier try, it returns that reply.
      if (numbered !== undefined && isLate(error)) {
        if (some.length > 1) some = outcomes.slice(0, some.length >> 1);
        if (claim !== undefined) claim = { ...claim, count: Math.max(1, claim.count >> 1) };
      }
      failingSince ??= systemClock.monotonic();
      if (numbered !== undefined) this.#watch(lane, numbered, delivery);
      await this.#failed(lane, error, failures, failingSince, delivers);
    };
    let reply: CallReply;
    try {
      reply = await untilDone(send, failed);
    } catch (thrown) {
      lane.landed();
      if (!isRefusal(thrown)) throw thrown;
      return await this.#refused(lane, delivery, terms, thrown);
    }
    return reply.results.length < outcomes.length ? this.#deliverRest(lane, delivery, reply) : reply;
  }

  /** Reports a call that has failed as stuck, when it is older than a lock. */
  #watch(lane: Lane, { session, seq, sentAt }: Numbered, { outcomes, since = sentAt }: Delivery): void {
    const { onStuck, hangMs } = this.#options;
    if (onStuck === undefined || lane.stuckTimer !== undefined) return;
    const pauseMs = Math.max(STUCK_MS, hangMs / 4);
    const report = (): void => {
      if (onStuck({ session, seq, outcomes })) lane.givenUp = true;
      lane.stuckTimer = setTimeout(report, pauseMs).unref();
    };
    const age = between(since, now(systemClock));
    lane.stuckTimer = setTimeout(report, Math.max(STUCK_MS, hangMs - age)).unref();
  }

  /** Reports a failed try and waits before the next. Rejects if the call is given up. */
  async #failed(lane: Lane, error: Error, failures: number, failingSince: number, delivers: boolean): Promise<void> {
    this.#options.health?.failed(error);
    lane.outage.failed(error);
    await this.#pause(error, failures, failingSince);
    if (!this.#isOver(error, delivers, failingSince)) return;
    lane.outage.givenUp();
    const message = `The store did not answer before the ${this.#options.who} was closed: ${error.message}`;
    throw new HoldfastError('OUTCOME_UNKNOWN', message, { cause: error });
  }

  /**
   * Handles a refused call. Its number is used up: if an earlier try of it still arrives, the store ignores it as outdated. If an earlier
   * try was carried out, the store recognises the tokens of its outcomes, and reconciling finds the jobs that it claimed.
   */
  async #refused(
    lane: Lane,
    { outcomes, substitute, since }: Delivery,
    terms: ClaimTerms | undefined,
    refusal: Error,
  ): Promise<CallReply> {
    const { health } = this.#options;
    lane.outage.givenUp();
    try {
      if (substitute === undefined) throw refusal;
      const failingSince = systemClock.monotonic();
      let failures = 0;
      const { results, substituted, last } = await settleOneByOne<CallReply>(outcomes as [Outcome, ...Outcome[]], {
        settle: (outcome) => this.#perform(lane, { outcomes: [outcome], since }),
        substitute,
        trouble: (error) => this.#failed(lane, error, ++failures, failingSince, true),
      });
      const claimed =
        terms === undefined || this.#closeTimeoutMs !== undefined ? undefined : this.#perform(lane, { outcomes: [] }, terms);
      // If the claim is given up because the owner closes meanwhile, the results must still be returned.
      const reply = (await claimed?.catch(() => undefined)) ?? last;
      return { ...reply, results, substituted, retried: true };
    } finally {
      health?.answered(false);
    }
  }

  /** Sends the outcomes that were left out of a call, because all of them took the store too long. */
  async #deliverRest(lane: Lane, { outcomes, substitute, since }: Delivery, reply: CallReply): Promise<CallReply> {
    const done = reply.results.length;
    const rest = await this.#perform(lane, {
      outcomes: outcomes.slice(done),
      since: since ?? reply.sentAt,
      substitute: substitute && ((index, refusal) => substitute(done + index, refusal)),
    });
    const results = [...reply.results, ...rest.results];
    const merged: CallReply = { ...reply, results, givenUp: reply.givenUp || rest.givenUp };
    if (rest.substituted !== undefined)
      merged.substituted = new Map(Array.from(rest.substituted, ([index, found]) => [done + index, found]));
    return merged;
  }

  /** The fast path of almost every call. Waiting would cost a timer and some promises: 1 of the 8.7 µs that a call takes here. */
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
    terms: ClaimTerms | undefined,
  ): Promise<SettleReply> {
    const { queue } = this.#options;
    const claim = terms === undefined ? undefined : requestOf(terms, id, seq, lane);
    if (outcomes.length > 0) return store.settle(queue, outcomes, { caller: id, seq, lane }, claim);
    return claim === undefined ? Promise.resolve({ results: [] }) : store.claim(queue, claim).then(withoutResults);
  }

  #isOver(error: Error, delivers: boolean, failingSince: number): boolean {
    if (this.#closeTimeoutMs === undefined) return false;
    // A closed store does not come back.
    const gone = error instanceof HoldfastError && error.code === 'STORE_CLOSED';
    return gone || !delivers || systemClock.monotonic() - failingSince >= this.#closeTimeoutMs;
  }

  /** Rejects with a timeout if no reply comes, so that a hung call is reported. A numbered call can be repeated safely. */
  async withTimeout<T>(answer: Promise<T>, delivers: boolean): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let giveUp: (error: Error) => void;
    const timedOut = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const arm = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => giveUp(unanswered()), this.#timeoutMs(delivers));
    };
    arm();
    this.#onClosing.add(arm);
    try {
      return await Promise.race([answer, timedOut]);
    } finally {
      clearTimeout(timer);
      this.#onClosing.delete(arm);
    }
  }

  #timeoutMs(delivers: boolean): number {
    if (this.#closeTimeoutMs === undefined) return this.#options.hangMs;
    return delivers ? this.#closeTimeoutMs : Math.min(this.#closeTimeoutMs, CLAIM_TIMEOUT_MS);
  }

  async #pause(error: Error, failures: number, failingSince: number): Promise<void> {
    const grown = retryPauseMs(failures);
    const closeMs = this.#closeTimeoutMs;
    // A call is given up in time, so that a session which is closed has its locks.
    const left = closeMs === undefined ? Infinity : Math.max(0, failingSince + closeMs - systemClock.monotonic());
    const ms = isRetryable(error) || closeMs !== undefined ? Math.min(grown, left) : Math.max(grown, this.#options.retryDelayMs);
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

/** Copies field by field: `{ ...terms, ...numbered }` took 12 µs, as long as the rest of a call's bookkeeping. */
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
