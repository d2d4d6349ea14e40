// Makes the settings of the queue that a worker's options ask for (`group`, `metrics`). All workers of the queue share them. The settings are
// made once for each session of the worker, after it was opened and before its first claim. So if the store loses its data, it loses the
// session too, and refuses the claims that rely on the settings. `forget` keeps the limits of groups while a session is open.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import type { GroupLimitOptions } from '../job/group.js';
import { systemClock } from '../runtime/clock.js';
import { OutageReport } from '../runtime/outage-report.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { inTime } from '../runtime/within.js';
import type { Session } from '../session/session.js';
import type { SessionOwner } from '../session/session-owner.js';
import type { GroupRules, QueueSettings, Store } from '../store/contract/index.js';
import type { AnyWorkerEmitter } from './events.js';
import type { Lifecycle } from './lifecycle.js';
import type { WorkerOptions } from './options.js';

/** A call without a reply for this long, in ms, is repeated: the same settings are made again. */
const REPLY_TIMEOUT_MS = 5000;

export interface QueueSetupOptions {
  queue: string;
  opts: Pick<WorkerOptions, 'group' | 'metrics'>;
  /** Owns the worker's session. */
  owner: Pick<SessionOwner, 'current' | 'session'>;
  lifecycle: Lifecycle;
  emitter: AnyWorkerEmitter;
  ready(): Promise<Store>;
}

export class QueueSetup {
  readonly #options: QueueSetupOptions;
  readonly #settings: QueueSettings | undefined;
  /** The session that was open before the store took the settings. */
  #session: Session | undefined;
  #setting: Promise<void> | undefined;

  constructor(options: QueueSetupOptions) {
    this.#options = options;
    this.#settings = settingsOf(options.opts);
  }

  /** False: a claim must wait for `set`. */
  get isMade(): boolean {
    return this.#isMadeFor(this.#options.owner.current);
  }

  /**
   * Resolves when the store has the settings, or the worker closes. Without them a claim would start too many jobs, or jobs would finish
   * uncounted, so the call is repeated until the store has replied. Rejects if the store refuses them.
   */
  set(): Promise<void> {
    if (this.#settings === undefined || this.isMade) return Promise.resolve();
    this.#setting ??= this.#make(this.#settings).finally(() => {
      this.#setting = undefined;
    });
    return this.#setting;
  }

  /** Returns undefined if this session may claim. Otherwise it makes the settings; false: the worker must not claim now. */
  prepare(session: Session): Promise<boolean> | undefined {
    return this.#isMadeFor(session) ? undefined : this.#prepare();
  }

  async #prepare(): Promise<boolean> {
    try {
      await this.set();
      return !this.#options.lifecycle.isClosing;
    } catch (thrown) {
      this.#options.emitter.emit('error', toError(thrown));
      return false;
    }
  }

  #isMadeFor(session: Session | undefined): boolean {
    return this.#settings === undefined || (session !== undefined && session === this.#session);
  }

  async #make(settings: QueueSettings): Promise<void> {
    const { lifecycle, emitter, owner, ready } = this.#options;
    const report = new OutageReport(
      (error) => void emitter.emit('error', error),
      (outageMs) => void emitter.emit('recovered', outageMs),
    );
    for (let failures = 1; !lifecycle.isClosing; failures += 1) {
      let session: Session | undefined;
      const askedAt = systemClock.monotonic();
      try {
        const store = await ready();
        session = await owner.session();
        // The timer does not keep a process alive whose worker was closed meanwhile.
        await inTime(REPLY_TIMEOUT_MS, store.configure(this.#options.queue, settings), noReply, false);
        this.#session = session;
        report.answered();
        return;
      } catch (error) {
        if (lifecycle.isClosing) return;
        // Calls of the worker are repeated, too, while no session can be opened.
        if (session !== undefined && !isRetryable(error)) throw error;
        report.failed(toError(error), askedAt);
      }
      await inTime(retryPauseMs(failures), lifecycle.forced, noReply, false).catch(() => undefined);
    }
  }
}

function noReply(): HoldfastError {
  return new HoldfastError('TIMEOUT', 'The store did not answer when the settings of the queue were made.', { retryable: true });
}

function settingsOf({ group, metrics }: QueueSetupOptions['opts']): QueueSettings | undefined {
  const points = metrics?.maxDataPoints ?? 0;
  if (group === undefined && points === 0) return undefined;
  return { ...(group !== undefined && { groups: rulesOf(group) }), ...(points > 0 && { metrics: { points } }) };
}

function rulesOf({ concurrency, limit }: GroupLimitOptions): GroupRules {
  return {
    ...(concurrency !== undefined && { maxActive: concurrency }),
    ...(limit !== undefined && { rate: { max: limit.max, durationMs: limit.duration } }),
  };
}
