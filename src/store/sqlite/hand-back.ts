// Jobs whose lock ends without an outcome of their owner: handed back or taken away (uncharged), or stalled (charged).
import { keepOnFail } from '../../job/options.js';
import { STALLED_REASON } from '../contract.js';
import type { Database, Statement } from './driver.js';
import type { QueueState } from './queue-state.js';
import type { Retention } from './retention.js';
import { STATE, TO_WAITING } from './schema.js';

export type HeldRow = [job: number, id: string, priority: number, stalledCounter: number, lockKey: string | null];
export const HELD_COLUMNS = 'job, id, priority, stalledCounter, lockKey';

export interface Stalled {
  stalled: string[];
  failed: string[];
}

export class HandBack {
  readonly #retention: Retention;
  readonly #toFront: Statement;
  readonly #fail: Statement<[opts: string]>;
  readonly #remove: Statement<[logNext: number]>;

  constructor(db: Database, retention: Retention) {
    this.#retention = retention;
    const unlock = 'session = NULL, fence = NULL, claimSeq = NULL, endsAt = NULL, timed = 0';
    this.#toFront = db.prepare(`UPDATE jobs SET ${TO_WAITING}, ord = ?, stalledCounter = ?, ${unlock} WHERE job = ?`);
    this.#fail = db.prepare(
      `UPDATE jobs SET state = ${STATE.failed}, ord = ?, stalledCounter = ?, finishedOn = ?, failedReason = ?, ${unlock}
       WHERE job = ? RETURNING opts`,
    );
    this.#remove = db.prepare('DELETE FROM jobs WHERE job = ? RETURNING logNext');
  }

  /** In the order in which they were claimed: so they wait again. */
  giveBack(queue: QueueState, held: HeldRow[]): void {
    let ord = this.#frontFor(queue, held.length);
    for (const [job, id, priority, stalledCounter, lockKey] of held) {
      queue.touch(lockKey);
      this.#toWaiting(queue, job, id, priority, stalledCounter, ord++);
    }
  }

  stall(queue: QueueState, held: HeldRow[], maxStalls: number, now: number): Stalled {
    const reply: Stalled = { stalled: [], failed: [] };
    let ord = this.#frontFor(queue, held.length);
    for (const [job, id, priority, before, lockKey] of held) {
      queue.touch(lockKey);
      queue.tell('stalled', id);
      const stalledCounter = before + 1;
      if (stalledCounter <= maxStalls) {
        this.#toWaiting(queue, job, id, priority, stalledCounter, ord++);
        reply.stalled.push(id);
      } else {
        this.#toFailed(queue, job, id, stalledCounter, now);
        reply.failed.push(id);
      }
    }
    return reply;
  }

  #frontFor(queue: QueueState, count: number): number {
    queue.front -= count;
    return queue.front;
  }

  #toWaiting(queue: QueueState, job: number, id: string, priority: number, stalledCounter: number, ord: number): void {
    this.#toFront.run(ord, stalledCounter, job);
    queue.active -= 1;
    queue.countWaiting(priority, 1);
    queue.tell('waiting', id, { prev: 'active' });
  }

  #toFailed(queue: QueueState, job: number, id: string, stalledCounter: number, now: number): void {
    const opts = this.#fail.get(queue.toBack(), stalledCounter, now, STALLED_REASON, job)?.[0] ?? '{}';
    queue.active -= 1;
    queue.failed += 1;
    queue.tell('failed', id, { failedReason: STALLED_REASON });
    const keep = keepOnFail(opts);
    if (keep.count !== 0) {
      this.#retention.trim(queue, 'failed', [keep], now);
    } else {
      queue.failed -= 1;
      if ((this.#remove.get(job)?.[0] ?? 0) > 0) this.#retention.deleteLogs(job);
    }
  }
}
