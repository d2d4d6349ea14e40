// One group of jobs: its number in line and its limits, as its row in the table `groups` has them.
import type { GroupInfo, GroupSettings } from '../../contract/index.js';
import type { RateLimit } from '../../../job/rate.js';
import type { Value } from '../driver/load.js';
import type { ClaimWindow } from './rate-limit.js';
import type { Moment } from './clock.js';

/**
 * Where a group is. Partial indexes contain these numbers. `idle`: the row is deleted when its block and window have ended. `kept`: out of
 * line, with active jobs or settings. `full`: in line, but paused or without a place.
 */
export const PLACE = { idle: 0, ring: 1, resting: 2, full: 3, kept: 4 } as const;

/** shared/group-columns.sql */
export type GroupRow = [
  key: string,
  number: number | null,
  paused: number,
  maxActive: number | null,
  rateMax: number | null,
  rateMs: number | null,
  limitedUntil: number,
  windowEnds: number,
  windowUsed: number,
];

export class Group implements ClaimWindow {
  number: number | undefined;
  paused = false;
  maxActive: number | undefined;
  rate: RateLimit | undefined;
  limitedUntil = 0;
  windowEnds = 0;
  windowUsed = 0;

  constructor(readonly key: string) {}

  static of([key, number, paused, maxActive, rateMax, rateMs, limitedUntil, windowEnds, windowUsed]: GroupRow): Group {
    const rate = rateMax === null || rateMs === null ? undefined : { max: rateMax, durationMs: rateMs };
    const own = { number: number ?? undefined, paused: paused === 1, maxActive: maxActive ?? undefined, rate };
    return Object.assign(new Group(key), own, { limitedUntil, windowEnds, windowUsed });
  }

  get row(): Value[] {
    const { key, number, paused, maxActive, rate, limitedUntil, windowEnds, windowUsed } = this;
    const own = [number ?? null, paused ? 1 : 0, maxActive ?? null, rate?.max ?? null, rate?.durationMs ?? null];
    return [key, ...own, limitedUntil, windowEnds, windowUsed];
  }

  get hasSettings(): boolean {
    return this.paused || this.maxActive !== undefined || this.rate !== undefined;
  }

  set({ paused, maxActive, rate, blockedMs }: GroupSettings, transaction: Moment): void {
    if (paused !== undefined) this.paused = paused;
    if (maxActive !== undefined) this.maxActive = maxActive ?? undefined;
    if (rate !== undefined) this.rate = rate ?? undefined;
    if (blockedMs !== undefined) this.limitedUntil = blockedMs === 0 ? 0 : transaction.after(blockedMs);
    if (blockedMs === 0) this.windowEnds = 0;
  }

  forgetSettings(): void {
    Object.assign(this, { paused: false, maxActive: undefined, rate: undefined, limitedUntil: 0, windowEnds: 0 });
  }

  info(active: number): GroupInfo {
    const { key, paused, maxActive, rate } = this;
    return { key, paused, active, ...(maxActive !== undefined && { maxActive }), ...(rate !== undefined && { rate }) };
  }
}
