// A schedule as a store keeps and returns it.

export interface ScheduleRecord {
  id: string;
  /** Grows by 1 with each change. A new schedule begins with the store's epoch ms, so it does not repeat the versions of a removed one. */
  version: number;
  /** The caller's text. */
  spec: string;
  /** True: the next job is made when the last one has ended. */
  serial: boolean;
  state: 'running' | 'owing' | 'paused' | 'ended';
  /** The slot of the next job; without a next job, of the last one. 0 if there was none. */
  at: number;
  /** The count of that slot. */
  count: number;
  nextJobId?: string;
}
