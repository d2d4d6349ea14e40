// Decides whether a worker makes progress, from its own calls and its session: a running process or an open connection proves nothing.
// The worker's calls report here; `worker.health()` and `isHealthy()` read it. It must never call the store, because a probe must not hang
// together with the store that it checks.
import { HoldfastError } from '../errors.js';
import type { Session } from '../session/session.js';
import { between, now, trustUntil } from '../session/trust.js';
import type { Clock } from '../runtime/clock.js';
import type { Store } from '../store/contract/index.js';
import type { WorkerState } from './lifecycle.js';
import { LoopTime } from './loop-time.js';
import type { Slots } from './slots.js';

export interface WorkerHealth {
  /** False if there is at least one reason. */
  healthy: boolean;
  /** One `CODE: what is wrong and what to do` for each problem; see the guide. */
  reasons: string[];
  /** Jobs that run here now. */
  running: number;
  /** Jobs that may run here at once. */
  slots: number;
  /** Jobs that were claimed ahead (`prefetch`) and have not started. */
  prefetched: number;
  paused: boolean;
  closing: boolean;
  /** Where locks are renewed: in the lock thread, on the event loop, or not known yet. */
  lockThread: 'starting' | 'thread' | 'loop';
  /** Set once the store was opened: 'sqlite' with 'node:sqlite', 'redis' with 'ioredis' … */
  store?: { engine: string; driver?: string };
  /** For how many ms the store has replied to none of this worker's calls; 0 if it replies. */
  storeOutageMs: number;
  /** The longest block of the event loop in the last minute, in ms. */
  blockedMs: number;
  /** Milliseconds since the store last replied to a claim. Time in which the event loop was blocked does not count. */
  lastClaimMs?: number;
  /** Milliseconds since the last successful renewal of the locks was sent. */
  lastRenewalMs?: number;
  /** Milliseconds since the last wake-up by the store. Without wake-ups, jobs are still found by polling every `drainDelay`. */
  lastWakeUpMs?: number;
}

export interface HealthOptions {
  queue: string;
  clock: Clock;
  slots: Slots;
  prefetched(): number;
  /** The longest time between two claims while a slot is free, in ms. */
  idleMs: number;
  /** Time between renewals, in ms. 0: sessions are not renewed. */
  renewMs: number;
  session(): Session | undefined;
  state(): WorkerState;
  /** For how long an outcome has been overdue whose lock was given up, in ms; 0 if there is none. */
  overdueMs(): number;
  /** The reason why the store refused the start of the worker. */
  refusal(): Error | undefined;
  /** The event loop was blocked, and no lock thread reports it. */
  onBlocked?(blockedMs: number): void;
}

/** A store that takes longer to reply, in ms, is in trouble. Workers recover from shorter outages by themselves. */
const TROUBLE_MS = 3000;

interface OpenCall {
  since: number;
  error?: Error;
}

export class Health {
  readonly #options: HealthOptions;
  readonly #time: LoopTime;
  /** The start of the time in which no open call got a reply. */
  #call: OpenCall | undefined;
  #open = 0;
  #answeredAt: number | undefined;
  #claimedAt: number | undefined;
  #wokenAt: number | undefined;
  /** The last moment at which no claim was due, or a claim got a reply. */
  #claimDueFrom = 0;
  #sessionSeenAt = 0;
  #byThread: boolean | undefined;
  #store: WorkerHealth['store'];

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#time = new LoopTime(options.clock, (blockedMs) => {
      // The thread notices a block sooner, and knows its own pauses.
      if (this.#byThread === false) options.onBlocked?.(blockedMs);
    });
  }

  /** A call starts, or waits for a session. */
  asked(): void {
    this.#time.start(() => this.#look());
    this.#open += 1;
    this.#call ??= { since: this.#time.now() };
  }

  /** A try has failed; the call is repeated. */
  failed(error: Error): void {
    if (this.#call !== undefined) this.#call.error = error;
  }

  /** `withClaim`: the call asked for jobs, and the session was alive. */
  answered(withClaim: boolean): void {
    const time = this.#time.now();
    this.#open -= 1;
    this.#call = this.#open > 0 ? { since: time } : undefined;
    this.#answeredAt = time;
    this.#sessionSeenAt = time;
    if (withClaim) {
      this.#claimedAt = time;
      this.#claimDueFrom = time;
    }
  }

  woken(): void {
    this.#wokenAt = this.#time.now();
  }

  opened({ capabilities: { engine }, driver }: Store): void {
    this.#store = { engine, ...(driver !== undefined && { driver }) };
  }

  threaded(byThread: boolean): void {
    this.#byThread = byThread;
  }

  stop(): void {
    this.#time.stop();
    this.#call = undefined;
  }

  report(): WorkerHealth {
    const { slots, prefetched, state } = this.#options;
    const time = this.#look();
    const reasons = this.#reasons(time);
    const since = (moment: number | undefined): number | undefined => (moment === undefined ? undefined : time - moment);
    const ages = {
      lastClaimMs: since(this.#claimedAt),
      lastRenewalMs: this.#sinceRenewal(),
      lastWakeUpMs: since(this.#wokenAt),
    };
    const known = Object.entries(ages).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, Math.round(ms)]]));
    return {
      healthy: reasons.length === 0,
      reasons,
      running: slots.running - slots.waiting,
      slots: slots.concurrency,
      prefetched: prefetched(),
      paused: state() === 'paused',
      closing: isClosing(state()),
      lockThread: this.#byThread === undefined ? 'starting' : this.#byThread ? 'thread' : 'loop',
      ...(this.#store !== undefined && { store: this.#store }),
      storeOutageMs: Math.round(this.#outage(time)),
      blockedMs: Math.round(this.#time.blockedMs()),
      ...(Object.fromEntries(known) as Pick<WorkerHealth, keyof typeof ages>),
    };
  }

  isHealthy(): boolean {
    return this.#reasons(this.#look()).length === 0;
  }

  /** Moves the moments that must not count against the worker: a slot that was busy for an hour may have become free just now. */
  #look(): number {
    const { session, slots, state } = this.#options;
    const time = this.#time.now();
    const phase = state();
    const claims = phase === 'running' || phase === 'starting';
    if (!claims || slots.freeAfter(0) === 0) this.#claimDueFrom = time;
    if (!claims || session() !== undefined) this.#sessionSeenAt = time;
    return time;
  }

  #reasons(time: number): string[] {
    const { queue, state, idleMs, renewMs, session } = this.#options;
    const phase = state();
    if (isClosing(phase)) return [`CLOSED: the worker of ${queue} was closed and takes no more jobs; make a new one.`];
    if (phase === 'idle') return [this.#idleReason()];
    const reasons: string[] = [];
    const outage = this.#outage(time);
    if (outage > 0) reasons.push(this.#trouble(outage));
    else if (this.#answeredAt === undefined && phase !== 'by hand') {
      reasons.push(`STARTING: the store has not answered the worker of ${queue} yet; ask again in a moment.`);
    } else if (time - this.#claimDueFrom > idleMs + TROUBLE_MS) {
      const ms = Math.round(time - this.#claimDueFrom);
      reasons.push(`CLAIM_OVERDUE: no claim for ${ms} ms although slots are free; restart the process and report a bug.`);
    } else if (time - this.#sessionSeenAt > TROUBLE_MS) {
      reasons.push('SESSION_GONE: the store has ended the session, and handlers that lost their locks hold all slots; end them.');
    }
    const overdueMs = this.#options.overdueMs();
    if (overdueMs > 0) {
      const text = `the store has not accepted outcomes for ${overdueMs} ms, and their jobs were given up; check the connection of this process.`;
      reasons.push(`OUTCOME_OVERDUE: ${text}`);
    }
    const renewal = renewMs === 0 ? undefined : this.#sinceRenewal();
    if (renewal !== undefined && ((session()?.trustedForMs() ?? 1) <= 0 || renewal > renewMs + TROUBLE_MS)) {
      reasons.push(`RENEWAL_OVERDUE: locks were last renewed ${renewal} ms ago; the error events of the worker say why.`);
    }
    return reasons;
  }

  #idleReason(): string {
    const { queue, refusal } = this.#options;
    const error = refusal();
    if (error === undefined) return `NOT_STARTED: the worker of ${queue} does not run; call run().`;
    return `${codeOf(error)}: the store has refused the start of the worker of ${queue}, which takes no job. ${error.message}`;
  }

  /** Returns 0 while the outage may be short. An error that will not heal with time counts at once. */
  #outage(time: number): number {
    if (this.#call === undefined) return 0;
    const { since, error } = this.#call;
    const refused = error instanceof HoldfastError && !error.retryable;
    const lasted = time - since;
    return refused || lasted > TROUBLE_MS ? Math.max(1, lasted) : 0;
  }

  #trouble(outage: number): string {
    const error = this.#call?.error;
    const ms = Math.round(outage);
    if (error === undefined) return `STORE_SILENT: the store has not answered for ${ms} ms; check that it can be reached.`;
    return `${codeOf(error)}: the store has answered no call for ${ms} ms. ${error.message}`;
  }

  /** Computed from the trust deadline in shared memory, which the renewer moves with each renewal. */
  #sinceRenewal(): number | undefined {
    const { session, clock, renewMs } = this.#options;
    const current = session();
    if (current === undefined || renewMs === 0) return undefined;
    return between(current.trustedUntil, trustUntil(now(clock), current.durationMs));
  }
}

function codeOf(error: Error): string {
  return error instanceof HoldfastError ? error.code : 'STORE_FAILED';
}

function isClosing(state: WorkerState): boolean {
  return state === 'closing' || state === 'closed';
}
