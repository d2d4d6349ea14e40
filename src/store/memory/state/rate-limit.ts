// Counts how many claims a queue still allows: a block set by a user, and the window in which limited claims count.
import type { RateLimit } from '../../../job/rate.js';

interface Window {
  endsAt: number;
  used: number;
  /** The maximum of the claim that last counted in this window. Only `visibleMs` reads it. */
  max: number;
}

export class ClaimLimits {
  #blockedUntil = Number.NEGATIVE_INFINITY;
  #window: Window | undefined;

  /** Blocks claims for `durationMs`. 0 removes the block and the window. */
  block(durationMs: number, now: number): void {
    this.#blockedUntil = now + durationMs;
    if (durationMs === 0) this.#window = undefined;
  }

  /** Returns how many claims are possible now. Without a limit only a block counts. */
  room(limit: RateLimit | undefined, now: number): number {
    if (this.#blockedUntil > now) return 0;
    if (limit === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, limit.max - (this.#open(now)?.used ?? 0));
  }

  /** Counts claims. The window opens with the first claim that it counts, not when `room` is first called. */
  use(claims: number, limit: RateLimit | undefined, now: number): void {
    if (claims === 0) return;
    if (limit !== undefined && this.#open(now) === undefined)
      this.#window = { endsAt: now + limit.durationMs, used: 0, max: limit.max };
    const window = this.#open(now);
    if (window === undefined) return;
    window.used += claims;
    if (limit !== undefined) window.max = limit.max;
  }

  /** Returns the milliseconds until claims under this limit are possible again; 0 if they are possible now. */
  remainingMs(limit: RateLimit | undefined, now: number): number {
    const window = this.#open(now);
    const full = window !== undefined && limit !== undefined && window.used >= limit.max;
    return Math.max(0, this.#blockedUntil - now, full ? window.endsAt - now : 0);
  }

  /** True while a block or a window has an end ahead. */
  isOpen(now: number): boolean {
    return this.#blockedUntil > now || this.#open(now) !== undefined;
  }

  /** The same as `remainingMs`, under the limit that the queue's workers last used. */
  visibleMs(now: number): number {
    const window = this.#open(now);
    return this.remainingMs(window === undefined ? undefined : { max: window.max, durationMs: 0 }, now);
  }

  blockedMs(now: number): number {
    return Math.max(0, Math.ceil(this.#blockedUntil - now));
  }

  window(now: number): { used: number; endsInMs: number } | undefined {
    const window = this.#open(now);
    return window === undefined ? undefined : { used: window.used, endsInMs: Math.ceil(window.endsAt - now) };
  }

  #open(now: number): Window | undefined {
    return this.#window !== undefined && this.#window.endsAt > now ? this.#window : undefined;
  }
}
