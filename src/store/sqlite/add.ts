// The verbs `add` and `forgetCaller` of the SQLite store: they insert new jobs, and return the first reply when a caller repeats a
// call.
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import type { Callers } from './callers.js';
import type { Database, Statement } from './driver.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

export class Adding {
  readonly #callers: Callers;
  readonly #insert: Statement;

  constructor(db: Database, callers: Callers) {
    this.#callers = callers;
    this.#insert = db.prepare(
      `INSERT INTO jobs (queue, id, state, priority, ord, dueAt, delay, addedAt, timestamp, name, opts, data, lockKey)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (queue, id) DO NOTHING`,
    );
  }

  add(transaction: Transaction, name: string, jobs: NewJob[], call: Call): AddReply[] {
    const queue = transaction.queue(name);
    const { reply } = this.#callers.recall(queue.queue, call);
    if (reply !== undefined) return decode(reply);
    const replies = jobs.map((job) => this.#addOne(transaction, queue, job));
    this.#callers.remember(queue.queue, call, encode(replies), transaction.now);
    return replies;
  }

  forgetCaller(transaction: Transaction, name: string, caller: string): void {
    const queue = transaction.find(name);
    if (queue !== undefined) this.#callers.forget(queue.queue, caller);
  }

  #addOne(transaction: Transaction, queue: QueueState, job: NewJob): AddReply {
    const dueAt = job.delayMs > 0 ? transaction.after(job.delayMs) : null;
    let id = job.id ?? String(++queue.lastId);
    while (!this.#insertOne(transaction, queue, id, job, dueAt)) {
      if (job.id !== undefined) {
        queue.tell('duplicated', id);
        return { id, duplicate: true };
      }
      // Skip an id that a user has already chosen, because the new job would be dropped as its duplicate.
      id = String(++queue.lastId);
    }
    if (job.lockKey !== undefined) {
      queue.keyed = 1;
      queue.touch(job.lockKey);
    }
    queue.tell('added', id, { jobName: job.name });
    if (dueAt !== null) {
      queue.delayed += 1;
      queue.tell('delayed', id, { delay: dueAt });
    } else {
      queue.countWaiting(job.priority, 1);
      queue.tell('waiting', id);
    }
    return { id, duplicate: false };
  }

  #insertOne(transaction: Transaction, queue: QueueState, id: string, job: NewJob, dueAt: number | null): boolean {
    const { priority, delayMs, lifo, timestamp, name, opts, data, lockKey = null } = job;
    const delayed = dueAt !== null;
    const state = delayed ? STATE.delayed : lockKey === null ? STATE.waiting : STATE.behind;
    const ord = lifo && !delayed ? queue.toFront() : queue.toBack();
    const row = [queue.queue, id, state, priority, ord, dueAt, delayMs, transaction.now, timestamp, name, opts, data, lockKey];
    return this.#insert.run(...row) === 1;
  }
}

/** Encodes the replies for the callers table. Most calls get consecutive generated ids, which are stored as first id and count. */
function encode(replies: AddReply[]): string {
  const first = Number(replies[0]?.id);
  const run = Number.isInteger(first) && replies.every(({ id, duplicate }, index) => !duplicate && id === String(first + index));
  return JSON.stringify(run ? [first, replies.length] : replies);
}

function decode(text: string): AddReply[] {
  const reply = JSON.parse(text) as [number, number] | AddReply[];
  const [first, count] = reply;
  if (typeof first !== 'number' || typeof count !== 'number') return reply as AddReply[];
  return Array.from({ length: count }, (_, index) => ({ id: String(first + index), duplicate: false }));
}
