// The slots of a worker with batches. `concurrency` is the number of jobs in all batches that may run at once. Jobs are claimed only for
// batches that can begin: a small batch that runs leaves no room for the jobs of another one.
import { Slots } from './slots.js';

export class BatchSlots extends Slots {
  /** The most jobs of a batch. */
  readonly size: number;
  /** Number of batches whose handler runs. */
  open = 0;

  constructor(batches: number, size: number) {
    super(batches * size);
    this.size = size;
  }

  override set(batches: number): void {
    this.concurrency = batches * this.size;
  }

  /** True if another batch may begin. */
  get hasFree(): boolean {
    return (this.open + 1) * this.size <= this.concurrency;
  }

  /** Jobs of ended batches that the store has not acknowledged keep the slots of as many batches as they would fill. */
  override freeAfter(ending: number): number {
    const unacknowledged = Math.max(0, this.inHand - this.running - ending);
    const busy = this.open + Math.ceil(unacknowledged / this.size);
    return Math.max(0, this.concurrency - busy * this.size - this.waiting);
  }
}
