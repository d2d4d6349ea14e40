// The limits of a Queue: how many of its jobs run at once, and how many start within a time, on all workers of all machines together.
import { JOB_CONTEXT } from '../handle/job-context.js';
import { checkInteger, MAX_DELAY_MS, MAX_TIMER_MS } from '../runtime/check.js';
import type { QueueSettings, QueueStatus } from '../store/contract/index.js';
import { QueueGetters } from './getters.js';

/** BullMQ's reply if no limit holds jobs back. */
const NO_LIMIT = -2;

export abstract class QueueLimits<T, R, N extends string> extends QueueGetters<T, R, N> {
  /** Limits how many jobs of this queue run at once. */
  async setGlobalConcurrency(concurrency: number): Promise<void> {
    await this.#configure({ cap: { maxActive: checkInteger('concurrency', concurrency, { min: 1 }) } });
  }

  async getGlobalConcurrency(): Promise<number | null> {
    return (await this.#status()).cap?.maxActive ?? null;
  }

  async removeGlobalConcurrency(): Promise<void> {
    await this.#configure({ cap: null });
  }

  /** True if as many jobs run as the global concurrency allows. */
  async isMaxed(): Promise<boolean> {
    const { cap, counts } = await this.#status();
    return cap !== undefined && counts.active >= cap.maxActive;
  }

  /**
   * At most `max` jobs of this queue start within `duration` ms. Running workers keep to it at once. If a worker has a `limiter` too, this
   * `max` and the duration of the worker apply.
   */
  async setGlobalRateLimit(max: number, duration: number): Promise<void> {
    checkInteger('max', max, { min: 1 });
    await this.#configure({ rate: { max, durationMs: checkInteger('duration', duration, { min: 1, max: MAX_TIMER_MS }) } });
  }

  async getGlobalRateLimit(): Promise<{ max: number; duration: number } | null> {
    const { rate } = await this.#status();
    return rate === undefined ? null : { max: rate.max, duration: rate.durationMs };
  }

  /** Jobs that started under the rate limit stay counted for the limiters of workers, until their window ends. */
  async removeGlobalRateLimit(): Promise<void> {
    await this.#configure({ rate: null });
  }

  /** No job of this queue starts for this many ms from now. */
  async rateLimit(expireTimeMs: number): Promise<void> {
    await this.#configure({ blockedMs: checkInteger('expireTimeMs', expireTimeMs, { max: MAX_DELAY_MS }) });
  }

  /** Ends the effect of `rateLimit`, and the current window of a rate limit. Returns 1 if there was one, else 0. */
  async removeRateLimitKey(): Promise<number> {
    const { blockedMs, window } = await this.#status();
    await this.#configure({ blockedMs: 0 });
    return blockedMs === undefined && window === undefined ? 0 : 1;
  }

  /**
   * Returns the milliseconds until jobs may start again, under a limit of `maxJobs`; 0 if they may now. Without `maxJobs`, the global rate
   * limit applies. Without that, returns the milliseconds until the current limit ends; -2 if there is none, as in BullMQ.
   */
  async getRateLimitTtl(maxJobs?: number): Promise<number> {
    if (maxJobs !== undefined) checkInteger('maxJobs', maxJobs);
    const { blockedMs = 0, window, rate } = await this.#status();
    const max = maxJobs === undefined || maxJobs === 0 ? rate?.max : maxJobs;
    if (max !== undefined) return Math.max(blockedMs, window !== undefined && window.used >= max ? window.endsInMs : 0);
    return blockedMs === 0 && window === undefined ? NO_LIMIT : Math.max(blockedMs, window?.endsInMs ?? 0);
  }

  async #configure(settings: QueueSettings): Promise<void> {
    await (await this.store).configure(this[JOB_CONTEXT].stored, settings);
  }

  async #status(): Promise<QueueStatus> {
    return (await this.store).status(this[JOB_CONTEXT].stored);
  }
}
