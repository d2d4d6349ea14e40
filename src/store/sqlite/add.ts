// The verb `add` of the SQLite store: it adds new jobs, and returns the first reply when a caller repeats a call.
import type { Deduplication } from '../../job/deduplication.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { FamilyAdding, isOfFamily } from './add-family.js';
import type { Callers } from './state/callers.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Entering } from './state/enter.js';
import type { Entries } from './state/entries.js';
import type { Leaving } from './leave.js';
import { AT, type FoundRow } from './record.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

export interface AddingParts {
  callers: Callers;
  entering: Entering;
  entries: Entries;
  leaving: Leaving;
}

export class Adding {
  readonly #parts: AddingParts;
  readonly #families: FamilyAdding;
  readonly #owner: Statement<FoundRow>;

  constructor(db: Database, parts: AddingParts) {
    this.#parts = parts;
    this.#families = new FamilyAdding(parts.entering, parts.leaving.families);
    this.#owner = sql(db, 'find-job', 'queue id');
  }

  add(transaction: Transaction, name: string, jobs: NewJob[], call: Call): AddReply[] {
    const { callers } = this.#parts;
    if (jobs.some(isOfFamily)) return this.#addFamily(transaction, name, jobs, call);
    const queue = transaction.queue(name);
    const { reply } = callers.recall(queue.queue, call);
    if (reply !== undefined) return decode(reply);
    const replies = jobs.map((job) =>
      job.deduplication === undefined
        ? this.#addOne(transaction, queue, job)
        : this.#addUnique(transaction, queue, job, job.deduplication),
    );
    callers.remember(queue.queue, call, encode(replies), transaction.now);
    return replies;
  }

  #addFamily(transaction: Transaction, name: string, jobs: NewJob[], call: Call): AddReply[] {
    const { callers } = this.#parts;
    const known = transaction.find(name);
    const reply = known === undefined ? undefined : callers.recall(known.queue, call).reply;
    if (reply !== undefined) return decode(reply);
    const refused = this.#families.refuse(transaction, name, jobs);
    // A refused call makes no queue, so there is no place for its reply. A repetition is judged anew.
    if (refused !== undefined && known === undefined) return refused;
    const queue = transaction.queue(name);
    const replies = refused ?? this.#families.add(transaction, name, jobs);
    callers.remember(queue.queue, call, encode(replies), transaction.now);
    return replies;
  }

  #addOne(transaction: Transaction, queue: QueueState, job: NewJob): AddReply {
    let id = job.id ?? String(++queue.lastId);
    while (!this.#parts.entering.enter(transaction, queue, id, job)) {
      if (job.id !== undefined) {
        queue.record('duplicated', id);
        return { id, status: 'duplicate' };
      }
      // Skip an id that a user has already chosen, because the new job would be dropped as its duplicate.
      id = String(++queue.lastId);
    }
    return { id, status: 'added' };
  }

  #addUnique(transaction: Transaction, queue: QueueState, job: NewJob, mode: Deduplication): AddReply {
    const { entering, entries } = this.#parts;
    const id = entering.idOf(queue, job);
    if (id === undefined) return { id: job.id as string, status: 'duplicate' };
    const entry = entries.counting(queue, mode.id, transaction.now);
    const owner = entry === undefined ? undefined : this.#owner.get(queue.queue, entry.owner);
    const state = owner?.[AT.state];
    if (entry === undefined) {
      entering.enter(transaction, queue, id, job);
      entries.own(transaction, queue, mode, id);
      return { id, status: 'added' };
    }
    if (owner !== undefined && mode.replaceDelayed === true && state === STATE.delayed) {
      this.#replace(transaction, queue, owner, id, mode);
      entering.enter(transaction, queue, id, job);
      entries.extend(transaction, queue, mode, { ...entry, owner: id, draft: null });
      return { id, status: 'added' };
    }
    if (mode.keepLastIfActive === true && state === STATE.active) entries.keepDraft(queue, mode, entry, job);
    else if (mode.extend === true) entries.extend(transaction, queue, mode, entry);
    queue.record('deduplicated', entry.owner, { deduplicationId: mode.id, deduplicatedJobId: id });
    return { id: entry.owner, status: 'deduplicated' };
  }

  #replace(transaction: Transaction, queue: QueueState, owner: FoundRow, id: string, mode: Deduplication): void {
    queue.record('removed', owner[1], { prev: 'delayed' });
    this.#parts.leaving.drop(transaction, queue, owner, 'delayed', 'removed');
    queue.record('deduplicated', id, { deduplicationId: mode.id, deduplicatedJobId: owner[1] });
  }
}

/** A reply as the callers table stores it. */
interface StoredReply {
  id: string;
  duplicate: boolean;
  deduplicated?: boolean;
  /** The status of a job that is not added. */
  refused?: AddReply['status'];
}

/** Encodes the replies for the callers table. Most calls get consecutive generated ids, which are stored as first id and count. */
function encode(replies: AddReply[]): string {
  const first = Number(replies[0]?.id);
  const isRun = ({ id, status }: AddReply, index: number) => status === 'added' && id === String(first + index);
  if (Number.isInteger(first) && replies.every(isRun)) return JSON.stringify([first, replies.length]);
  const stored = replies.map(({ id, status }): StoredReply => {
    const reply = { id, duplicate: status === 'duplicate' };
    if (status === 'added' || status === 'duplicate') return reply;
    return status === 'deduplicated' ? { ...reply, deduplicated: true } : { ...reply, refused: status };
  });
  return JSON.stringify(stored);
}

function decode(text: string): AddReply[] {
  const reply = JSON.parse(text) as [number, number] | StoredReply[];
  const [first, count] = reply;
  if (typeof first !== 'number' || typeof count !== 'number')
    return (reply as StoredReply[]).map(({ id, duplicate, deduplicated, refused = 'added' }) => ({
      id,
      status: duplicate ? 'duplicate' : deduplicated === true ? 'deduplicated' : refused,
    }));
  return Array.from({ length: count }, (_, index) => ({ id: String(first + index), status: 'added' }));
}
