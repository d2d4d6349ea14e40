// The ids of the jobs whose handlers ended last. The lock thread knows the jobs of a block by their fences, and its report comes some
// milliseconds after the block: the handler that blocked has ended by then. No clock is read and nothing is allocated for a job.

/** More than a worker can end before the report of a block comes. */
const MOST = 1024;

export class RecentJobs {
  readonly #fences: number[] = [];
  readonly #ids: string[] = [];
  #next = 0;

  add(fence: number, jobId: string): void {
    this.#fences[this.#next] = fence;
    this.#ids[this.#next] = jobId;
    this.#next = (this.#next + 1) % MOST;
  }

  idsOf(fences: ReadonlySet<number>): string[] {
    return this.#ids.filter((_, index) => fences.has(this.#fences[index] as number));
  }
}
