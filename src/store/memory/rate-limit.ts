// How many claims a queue still allows: a block set by hand, and the window that limited claims count in.

interface Window {
  endsAt: number;
  used: number;
  /** What the claim that last counted here allows; only for those who ask from outside. */
  max: number;
}

export interface Limit {
  max: number;
  durationMs: number;
}

export class RateLimit {
  #blockedUntil = Number.NEGATIVE_INFINITY;
  #window: Window | undefined;

  /** 0 lifts the window too. */
  block(durationMs: number, now: number): void {
    this.#blockedUntil = now + durationMs;
    if (durationMs === 0) this.#window = undefined;
  }

  /** Claims that are possible now. Without a limit only a block counts. */
  room(limit: Limit | undefined, now: number): number {
    if (this.#blockedUntil > now) return 0;
    if (limit === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, limit.max - (this.#open(now)?.used ?? 0));
  }

  /** Counts claims. The window opens with the first of them, not with the first look. */
  use(claims: number, limit: Limit | undefined, now: number): void {
    if (claims === 0) return;
    if (limit !== undefined && this.#open(now) === undefined) {
      this.#window = { endsAt: now + limit.durationMs, used: 0, max: limit.max };
    }
    const window = this.#open(now);
    if (window === undefined) return;
    window.used += claims;
    if (limit !== undefined) window.max = limit.max;
  }

  /** Until claims under this limit are possible again; 0 when they are. */
  remainingMs(limit: Limit | undefined, now: number): number {
    const window = this.#open(now);
    const full = window !== undefined && limit !== undefined && window.used >= limit.max;
    return Math.max(0, this.#blockedUntil - now, full ? window.endsAt - now : 0);
  }

  /** The same for somebody who claims under the limit that the queue's workers use. */
  visibleMs(now: number): number {
    const window = this.#open(now);
    return this.remainingMs(window === undefined ? undefined : { max: window.max, durationMs: 0 }, now);
  }

  #open(now: number): Window | undefined {
    return this.#window !== undefined && this.#window.endsAt > now ? this.#window : undefined;
  }
}
