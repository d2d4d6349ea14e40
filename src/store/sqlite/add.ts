// The verb `add` of the SQLite store: it inserts new jobs, and returns the first reply when a caller repeats a call.
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

  #addOne(transaction: Transaction, queue: QueueState, job: NewJob): AddReply {
    const dueAt = job.delayMs > 0 ? transaction.after(job.delayMs) : null;
    let id = job.id ?? String(++queue.lastId);
    while (!this.#insertOne(transaction, queue, id, job, dueAt)) {
      if (job.id !== undefined) {
        queue.tell('duplicated', id);
        return { id, status: 'duplicate' };
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
    return { id, status: 'added' };
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

/** A reply as the callers table stores it, also for older versions. */
interface StoredReply {
  id: string;
  duplicate: boolean;
}

/** Encodes the replies for the callers table. Most calls get consecutive generated ids, which are stored as first id and count. */
function encode(replies: AddReply[]): string {
  const first = Number(replies[0]?.id);
  const isRun = ({ id, status }: AddReply, index: number) => status === 'added' && id === String(first + index);
  if (Number.isInteger(first) && replies.every(isRun)) return JSON.stringify([first, replies.length]);
  return JSON.stringify(replies.map(({ id, status }): StoredReply => ({ id, duplicate: status === 'duplicate' })));
}

function decode(text: string): AddReply[] {
  const reply = JSON.parse(text) as [number, number] | StoredReply[];
  const [first, count] = reply;
  if (typeof first !== 'number' || typeof count !== 'number')
    return (reply as StoredReply[]).map(({ id, duplicate }) => ({ id, status: duplicate ? 'duplicate' : 'added' }));
  return Array.from({ length: count }, (_, index) => ({ id: String(first + index), status: 'added' }));
}
