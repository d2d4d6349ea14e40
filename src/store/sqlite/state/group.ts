// One group of jobs: its number in line and its limits, as its row in the table `groups` has them.
import type { GroupInfo, GroupSettings } from '../../contract/index.js';
import type { RateLimit } from '../../../job/rate.js';
import type { Value } from '../driver/load.js';
import { type ClaimWindow, useRoom } from './rate-limit.js';
import type { Moment } from './clock.js';

/**
 * Where a group is. Partial indexes contain these numbers. `idle`: the row is deleted when its block and window have ended. `kept`: out of
 * line, with active jobs or settings. `full`: in line, but paused or without a place.
 */
export const PLACE = { idle: 0, ring: 1, resting: 2, full: 3, kept: 4 } as const;

/** `group-columns` in sql/groups.sql */
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
  place: number,
];

export class Group implements ClaimWindow {
  number: number | undefined;
  paused = false;
  maxActive: number | undefined;
  rate: RateLimit | undefined;
  limitedUntil = 0;
  windowEnds = 0;
  windowUsed = 0;
  /** The place that its row has; undefined if it has no row. */
  place: number | undefined;
  /** Whether its row has the same settings, block and window. */
  isWritten = false;

  constructor(readonly key: string) {}

  static of(row: GroupRow): Group {
    const group = new Group(row[0]);
    group.number = row[1] ?? undefined;
    group.paused = row[2] === 1;
    group.maxActive = row[3] ?? undefined;
    if (row[4] !== null && row[5] !== null) group.rate = { max: row[4], durationMs: row[5] };
    group.limitedUntil = row[6];
    group.windowEnds = row[7];
    group.windowUsed = row[8];
    group.place = row[9];
    group.isWritten = true;
    return group;
  }

  /** The values of its row up to `windowUsed`. */
  get row(): Value[] {
    const { key, number, paused, maxActive, rate, limitedUntil, windowEnds, windowUsed } = this;
    const own = [number ?? null, paused ? 1 : 0, maxActive ?? null, rate?.max ?? null, rate?.durationMs ?? null];
    return [key, ...own, limitedUntil, windowEnds, windowUsed];
  }

  /** Counts a claim in the window. */
  use(limit: RateLimit | undefined, transaction: Moment): void {
    if (limit === undefined && this.windowEnds <= transaction.now) return;
    useRoom(this, 1, limit, transaction);
    this.isWritten = false;
  }

  get hasSettings(): boolean {
    return this.paused || this.maxActive !== undefined || this.rate !== undefined;
  }

  set({ paused, maxActive, rate, blockedMs }: GroupSettings, transaction: Moment): void {
    this.isWritten = false;
    if (paused !== undefined) this.paused = paused;
    if (maxActive !== undefined) this.maxActive = maxActive ?? undefined;
    if (rate !== undefined) this.rate = rate ?? undefined;
    if (blockedMs !== undefined) this.limitedUntil = blockedMs === 0 ? 0 : transaction.after(blockedMs);
    if (blockedMs === 0) this.windowEnds = 0;
  }

  forgetSettings(): void {
    this.isWritten = false;
    Object.assign(this, { paused: false, maxActive: undefined, rate: undefined, limitedUntil: 0, windowEnds: 0 });
  }

  info(active: number): GroupInfo {
    const { key, paused, maxActive, rate } = this;
    return { key, paused, active, ...(maxActive !== undefined && { maxActive }), ...(rate !== undefined && { rate }) };
  }
}
