// One group of jobs: its waiting jobs, its number in line, and its limits.
import type { Linked } from '../../../runtime/linked-list.js';
import type { GroupInfo, GroupRules, GroupSettings } from '../../contract/index.js';
import type { Timed } from './heap.js';
import { ClaimLimits } from './rate-limit.js';
import { Waiting } from './waiting.js';

export class Group<T extends Linked<T> & { priority: number }> implements Timed {
  readonly jobs = new Waiting<T>();
  active = 0;
  paused = false;
  maxActive: number | undefined = undefined;
  rate: GroupRules['rate'];
  /** The number of the group in line; undefined if it is not in line. */
  number: number | undefined = undefined;
  /** The end of the block or of the used window that keeps the group from claims in turn. */
  restsUntil = Number.NEGATIVE_INFINITY;
  limit = new ClaimLimits();
  /** In the ring: the number. Among the resting groups: the end of the rest. */
  at = 0;
  turn = 0;
  slot = -1;
  /** Among the resting groups, not in the ring. */
  resting = false;
  /** The key as bytes: groups with the same number are ordered by it. */
  readonly #bytes: Buffer;

  constructor(readonly key: string) {
    this.#bytes = Buffer.from(key);
  }

  /** True if the group has neither jobs nor settings, is not in line, and no block or window is open. */
  isIdle(now: number): boolean {
    if (this.jobs.size > 0 || this.active > 0 || this.number !== undefined || this.hasSettings) return false;
    return !this.limit.isOpen(now);
  }

  get hasSettings(): boolean {
    return this.paused || this.maxActive !== undefined || this.rate !== undefined;
  }

  set({ paused, maxActive, rate, blockedMs }: GroupSettings, now: number): void {
    if (paused !== undefined) this.paused = paused;
    if (maxActive !== undefined) this.maxActive = maxActive ?? undefined;
    if (rate !== undefined) this.rate = rate === null ? undefined : { ...rate };
    if (blockedMs !== undefined) this.limit.block(blockedMs, now);
  }

  forgetSettings(): void {
    this.paused = false;
    this.maxActive = undefined;
    this.rate = undefined;
    this.limit = new ClaimLimits();
  }

  info(now: number, counted: boolean): GroupInfo {
    const { key, paused, active, maxActive, rate } = this;
    const limitedMs = Math.ceil(this.restsUntil - now);
    return {
      key,
      paused,
      active,
      ...(maxActive !== undefined && { maxActive }),
      ...(rate !== undefined && { rate: { ...rate } }),
      ...(limitedMs > 0 && { limitedMs }),
      ...(counted && { waiting: this.jobs.size }),
    };
  }

  /** Compares by the bytes of the keys. */
  compare(other: Group<T>): number {
    return Buffer.compare(this.#bytes, other.#bytes);
  }
}
