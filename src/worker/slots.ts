// How many jobs may run at once, and how many do.
export class Slots {
  concurrency: number;
  running = 0;

  constructor(concurrency: number) {
    this.concurrency = concurrency;
  }

  /** Free slots once `ending` runs have ended. Not below 0: the concurrency may have been lowered while more were running. */
  freeAfter(ending: number): number {
    return Math.max(0, this.concurrency - this.running + ending);
  }
}
