// Makes the settings of the queue that a worker's options ask for (`group`, `metrics`), before the worker's first claim and again when its
// session was lost: the store may have lost its data with it. All workers of the queue share them.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import type { GroupLimitOptions } from '../job/group.js';
import { OutageReport } from '../runtime/outage-report.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { inTime } from '../runtime/within.js';
import type { GroupRules, QueueSettings, Store } from '../store/contract/index.js';
import type { AnyWorkerEmitter } from './events.js';
import type { Lifecycle } from './lifecycle.js';
import type { WorkerOptions } from './options.js';

/** A call without a reply for this long, in ms, is repeated: the same settings are made again. */
const REPLY_TIMEOUT_MS = 5000;

export interface QueueSetupOptions {
  queue: string;
  opts: Pick<WorkerOptions, 'group' | 'metrics'>;
  lifecycle: Lifecycle;
  emitter: AnyWorkerEmitter;
  ready(): Promise<Store>;
}

export class QueueSetup {
  readonly #options: QueueSetupOptions;
  readonly #settings: QueueSettings | undefined;
  #set: Promise<void> | undefined;
  #isMade: boolean;
  #resets = 0;

  constructor(options: QueueSetupOptions) {
    this.#options = options;
    this.#settings = settingsOf(options.opts);
    this.#isMade = this.#settings === undefined;
  }

  /** False: a claim must wait for `set`. */
  get isMade(): boolean {
    return this.#isMade;
  }

  /** The store may no longer have the settings. */
  reset(): void {
    this.#isMade = this.#settings === undefined;
    this.#set = undefined;
    this.#resets += 1;
  }

  /**
   * Resolves when the store has the settings, or the worker closes. Without them a claim would start too many jobs, or jobs would finish
   * uncounted, so the call is repeated until the store has replied. Rejects if the store refuses them.
   */
  set(): Promise<void> {
    if (this.#settings === undefined) return Promise.resolve();
    this.#set ??= this.#make(this.#settings);
    return this.#set;
  }

  async #make(settings: QueueSettings): Promise<void> {
    const resets = this.#resets;
    try {
      await configure(this.#options, settings);
      // A reply to a call from before the reset says nothing about the store now.
      if (resets === this.#resets) this.#isMade = true;
    } catch (error) {
      if (resets === this.#resets) this.#set = undefined;
      throw error;
    }
  }
}

async function configure({ queue, ready, lifecycle, emitter }: QueueSetupOptions, settings: QueueSettings): Promise<void> {
  const report = new OutageReport(
    (error) => void emitter.emit('error', error),
    (outageMs) => void emitter.emit('recovered', outageMs),
  );
  for (let failures = 1; !lifecycle.isClosing; failures += 1) {
    try {
      const store = await ready();
      // The timer does not keep a process alive whose worker was closed meanwhile.
      await inTime(REPLY_TIMEOUT_MS, store.configure(queue, settings), noReply, false);
      report.answered();
      return;
    } catch (error) {
      if (lifecycle.isClosing) return;
      if (!isRetryable(error)) throw error;
      report.failed(toError(error));
    }
    await inTime(retryPauseMs(failures), lifecycle.forced, noReply, false).catch(() => undefined);
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
