// Whether a worker makes progress, told from what its own calls and its session show: a process that exists, or a connection that is
// open, proves nothing. The worker's calls report here; `worker.health()` and `isHealthy()` ask. It must never call the store: a probe
// that hangs with what it probes helps nobody.
import { HoldfastError } from '../errors.js';
import type { Session } from '../session/session.js';
import { between, now, trustUntil } from '../session/trust.js';
import type { Clock } from '../runtime/clock.js';
import type { Store } from '../store/contract/index.js';
import { LoopTime } from './loop-time.js';
import type { Slots } from './slots.js';

export interface WorkerHealth {
  /** False when there is a reason against it. */
  healthy: boolean;
  /** `CODE: what is wrong and what to do`, one for each; see the guide. */
  reasons: string[];
  /** Jobs that run here now. */
  running: number;
  /** Jobs that may run here at once. */
  slots: number;
  /** Jobs that were claimed ahead (`prefetch`) and have not begun. */
  prefetched: number;
  paused: boolean;
  closing: boolean;
  /** Who renews the locks: the lock thread, the event loop, or not known yet. */
  lockThread: 'starting' | 'thread' | 'loop';
  /** Once it was opened: 'sqlite' with 'node:sqlite', 'redis' with 'ioredis' … */
  store?: { engine: string; driver?: string };
  /** For how long the store has answered none of this worker's calls; 0 when it does. */
  storeOutageMs: number;
  /** The longest time in the last minute for which the event loop was blocked. */
  blockedMs: number;
  /** Since the store last answered a claim. Time for which the loop was blocked does not count. */
  lastClaimMs?: number;
  /** Since the renewal that the locks live on was sent. */
  lastRenewalMs?: number;
  /** Since the store last told that the queue has changed. Without wake-ups jobs are still found, by looking every `drainDelay`. */
  lastWakeUpMs?: number;
}

export interface HealthOptions {
  queue: string;
  clock: Clock;
  slots: Slots;
  prefetched(): number;
  /** The longest time between two claims while a slot is free. */
  idleMs: number;
  /** 0: sessions are not renewed. */
  renewMs: number;
  session(): Session | undefined;
  state(): WorkerState;
  /** The event loop was blocked, and no thread reports it. */
  onBlocked?(blockedMs: number): void;
}

/** by hand: without a processor, jobs are taken by getNextJob. */
export type WorkerState = 'by hand' | 'not started' | 'running' | 'paused' | 'closing';

/** A store that takes longer is in trouble. Shorter ones are blinks, from which workers recover by themselves. */
const PATIENCE_MS = 3000;

interface OpenCall {
  since: number;
  error?: Error;
}

export class Health {
  readonly #options: HealthOptions;
  readonly #time: LoopTime;
  /** Since when none of the calls that were made has been answered. */
  #call: OpenCall | undefined;
  #open = 0;
  #answeredAt: number | undefined;
  #claimedAt: number | undefined;
  #wokenAt: number | undefined;
  /** The last moment when nobody could expect a claim, or one was answered. */
  #claimDueFrom = 0;
  #sessionSeenAt = 0;
  #byThread: boolean | undefined;
  #store: WorkerHealth['store'];

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#time = new LoopTime(options.clock, (blockedMs) => {
      // The thread sees it sooner, and knows its own pauses.
      if (this.#byThread === false) options.onBlocked?.(blockedMs);
    });
  }

  /** A call is made, or waits for a session to be made under. */
  asked(): void {
    this.#time.start(() => this.#look());
    this.#open += 1;
    this.#call ??= { since: this.#time.now() };
  }

  /** A try has failed; the call is repeated. */
  failed(error: Error): void {
    if (this.#call !== undefined) this.#call.error = error;
  }

  /** `withClaim`: the store was asked for jobs, and the session was good for them. */
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
      running: slots.running,
      slots: slots.concurrency,
      prefetched: prefetched(),
      paused: state() === 'paused',
      closing: state() === 'closing',
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

  /** Moves the moments that must not be held against the worker: a slot that was busy for an hour may be free since just now. */
  #look(): number {
    const { session, slots, state } = this.#options;
    const time = this.#time.now();
    if (state() !== 'running' || slots.freeAfter(0) === 0) this.#claimDueFrom = time;
    if (state() !== 'running' || session() !== undefined) this.#sessionSeenAt = time;
    return time;
  }

  #reasons(time: number): string[] {
    const { queue, state, idleMs, renewMs, session } = this.#options;
    const phase = state();
    if (phase === 'closing') return [`CLOSED: the worker of ${queue} was closed and takes no more jobs; make a new one.`];
    if (phase === 'not started') return [`NOT_STARTED: the worker of ${queue} does not run; call run().`];
    const reasons: string[] = [];
    const outage = this.#outage(time);
    if (outage > 0) reasons.push(this.#trouble(outage));
    else if (this.#answeredAt === undefined && phase !== 'by hand') {
      reasons.push(`STARTING: the store has not answered the worker of ${queue} yet; ask again in a moment.`);
    } else if (time - this.#claimDueFrom > idleMs + PATIENCE_MS) {
      const ms = Math.round(time - this.#claimDueFrom);
      reasons.push(`CLAIM_OVERDUE: slots are free and no job was asked for in ${ms} ms; start the process anew and report it.`);
    } else if (time - this.#sessionSeenAt > PATIENCE_MS) {
      reasons.push('SESSION_GONE: the store has ended the session, and handlers that lost their locks hold all slots; end them.');
    }
    const renewal = renewMs === 0 ? undefined : this.#sinceRenewal();
    if (renewal !== undefined && ((session()?.trustedForMs() ?? 1) <= 0 || renewal > renewMs + PATIENCE_MS)) {
      reasons.push(`RENEWAL_OVERDUE: locks were last renewed ${renewal} ms ago; the error events of the worker say why.`);
    }
    return reasons;
  }

  /** 0 as long as it may be a blink. An error that time alone does not heal is none. */
  #outage(time: number): number {
    if (this.#call === undefined) return 0;
    const { since, error } = this.#call;
    const refused = error instanceof HoldfastError && !error.retryable;
    const lasted = time - since;
    return refused || lasted > PATIENCE_MS ? Math.max(1, lasted) : 0;
  }

  #trouble(outage: number): string {
    const error = this.#call?.error;
    const ms = Math.round(outage);
    if (error === undefined) return `STORE_SILENT: the store has not answered for ${ms} ms; check that it can be reached.`;
    const code = error instanceof HoldfastError ? error.code : 'STORE_FAILED';
    return `${code}: the store has answered no call for ${ms} ms. ${error.message}`;
  }

  /** From the deadline in shared memory, which the renewer moves with each renewal. */
  #sinceRenewal(): number | undefined {
    const { session, clock, renewMs } = this.#options;
    const current = session();
    if (current === undefined || renewMs === 0) return undefined;
    return between(current.trustedUntil, trustUntil(now(clock), current.durationMs));
  }
}
