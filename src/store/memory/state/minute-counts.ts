// Counts the finished jobs of each minute, for metrics. Minutes without a finished job are zeros.
import type { QueueMetrics } from '../../contract/index.js';

const MINUTE_MS = 60_000;

export class MinuteCounts {
  #count = 0;
  #minute: number | undefined = undefined;
  #current = 0;
  /** The whole minutes before the current one, the newest first. */
  #points: number[] = [];

  constructor(public keep: number) {}

  /** Counts a job that finished at `now`. If the clock was set back, the job counts in the newest minute. */
  add(now: number): void {
    const minute = Math.floor(now / MINUTE_MS);
    if (this.#minute === undefined) this.#minute = minute;
    else if (minute > this.#minute) this.#close(minute - this.#minute);
    this.#count++;
    this.#current++;
  }

  trim(): void {
    this.#points.length = Math.min(this.#points.length, this.keep);
  }

  /** `pick` takes the points that the reader asked for. */
  read(pick: (points: readonly number[]) => number[]): QueueMetrics {
    const metrics: QueueMetrics = { count: this.#count, points: pick(this.#points), total: this.#points.length };
    if (this.#minute !== undefined) metrics.current = { minute: this.#minute, count: this.#current };
    return metrics;
  }

  #close(minutes: number): void {
    const zeros = Array.from({ length: Math.min(minutes - 1, this.keep) }, () => 0);
    this.#points = [...zeros, this.#current, ...this.#points];
    this.trim();
    this.#minute = (this.#minute ?? 0) + minutes;
    this.#current = 0;
  }
}
