// Moves jobs whose lock ends without an outcome from their owner: handed back or revoked (no stall is counted), or stalled (a stall
// is counted).
import { type LossFound, lostByText } from '../../job/lost-by.js';
import { keepOnFail } from '../../job/options.js';
import { STALLED_REASON } from '../contract/index.js';
import type { Swept } from '../swept.js';
import type { Database, Statement } from './driver.js';
import type { EventFields, QueueState } from './queue-state.js';
import type { Retention } from './retention.js';
import { STATE, TO_WAITING } from './schema.js';

export type HeldRow = [job: number, id: string, priority: number, stalledCounter: number, lockKey: string | null];
export const HELD_COLUMNS = 'job, id, priority, stalledCounter, lockKey';

/** The session that lost the jobs. `lostBy` is null if the row of the session is missing. */
export interface Loss {
  maxStalls: number;
  lostBy: string | null;
}

export type OwnerRow = [maxStalls: number, host: string, pid: number, name: string, suspected: number];
export const OWNER_COLUMNS = 'maxStalls, host, pid, name, suspected';

/** `found` says how the loss was found. Default: the session's `suspected` flag decides. */
export function lossOf([maxStalls, host, pid, name, suspected]: [...OwnerRow, ...unknown[]], found?: LossFound): Loss {
  const how = found ?? (suspected === 1 ? 'process-gone' : 'session-expired');
  return { maxStalls, lostBy: lostByText({ host, pid, name }, how) };
}

export class HandBack {
  readonly #retention: Retention;
  readonly #toFront: Statement;
  readonly #stall: Statement;
  readonly #fail: Statement<[opts: string]>;
  readonly #remove: Statement<[logNext: number]>;

  constructor(db: Database, retention: Retention) {
    this.#retention = retention;
    const unlock = 'session = NULL, fence = NULL, claimSeq = NULL, endsAt = NULL, timed = 0';
    const stalled = 'stalledCounter = stalledCounter + 1, lostBy = ?';
    this.#toFront = db.prepare(`UPDATE jobs SET ${TO_WAITING}, ord = ?, ${unlock} WHERE job = ?`);
    this.#stall = db.prepare(`UPDATE jobs SET ${TO_WAITING}, ord = ?, ${stalled}, ${unlock} WHERE job = ?`);
    this.#fail = db.prepare(
      `UPDATE jobs SET state = ${STATE.failed}, ord = ?, ${stalled}, finishedOn = ?, failedReason = ?, ${unlock}
       WHERE job = ? RETURNING opts`,
    );
    this.#remove = db.prepare('DELETE FROM jobs WHERE job = ? RETURNING logNext');
  }

  /** Hands back jobs to the front of waiting, in the given order. This does not count as a stall. */
  giveBack(queue: QueueState, held: HeldRow[]): void {
    let ord = this.#frontFor(queue, held.length);
    for (const [job, id, priority, , lockKey] of held) {
      queue.touch(lockKey);
      this.#toFront.run(ord++, job);
      this.#waits(queue, id, priority);
    }
  }

  stall(queue: QueueState, held: HeldRow[], { maxStalls, lostBy }: Loss, now: number): Swept {
    const fields: EventFields | undefined = lostBy === null ? undefined : { lostBy };
    const swept: Swept = { stalled: [], failed: [] };
    let ord = this.#frontFor(queue, held.length);
    for (const [job, id, priority, before, lockKey] of held) {
      queue.touch(lockKey);
      queue.tell('stalled', id, fields);
      if (before < maxStalls) {
        this.#stall.run(ord++, lostBy, job);
        this.#waits(queue, id, priority);
        swept.stalled.push({ id, lostBy });
      } else {
        const opts = this.#fail.get(queue.toBack(), lostBy, now, STALLED_REASON, job)?.[0] ?? '{}';
        queue.tell('failed', id, { failedReason: STALLED_REASON, ...fields });
        this.#failed(queue, job, opts, now);
        swept.failed.push({ id, lostBy });
      }
    }
    return swept;
  }

  #frontFor(queue: QueueState, count: number): number {
    queue.front -= count;
    return queue.front;
  }

  #waits(queue: QueueState, id: string, priority: number): void {
    queue.active -= 1;
    queue.countWaiting(priority, 1);
    queue.tell('waiting', id, { prev: 'active' });
  }

  #failed(queue: QueueState, job: number, opts: string, now: number): void {
    queue.active -= 1;
    queue.failed += 1;
    const keep = keepOnFail(opts);
    if (keep.count !== 0) {
      this.#retention.trim(queue, 'failed', [keep], now);
    } else {
      queue.failed -= 1;
      if ((this.#remove.get(job)?.[0] ?? 0) > 0) this.#retention.deleteLogs(job);
    }
  }
}
