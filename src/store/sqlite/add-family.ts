// Adds jobs with parents or children, in any queues, as a whole or not at all.
import { isSameJob, type JobRef, refKey } from '../../job/family.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply } from '../contract/index.js';
import { type Families, parentsOf } from './family.js';
import type { Entering } from './state/enter.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

type Refusal = 'noParent' | 'otherParent';

/** A new link of a child to a parent. */
interface Linked {
  child: JobRef;
  parent: JobRef;
}

export function isOfFamily({ queue, parents, waitsForChildren }: NewJob): boolean {
  return queue !== undefined || parents !== undefined || waitsForChildren === true;
}

export class FamilyAdding {
  readonly #entering: Entering;
  readonly #families: Families;

  constructor(entering: Entering, families: Families) {
    this.#entering = entering;
    this.#families = families;
  }

  /** Returns the replies to a call that is refused; undefined if it is not. Changes nothing, and makes no queue. */
  refuse(transaction: Transaction, name: string, jobs: NewJob[]): AddReply[] | undefined {
    const refusals = this.#refusalsOf(transaction, name, jobs);
    if (!refusals.some((refusal) => refusal !== undefined)) return undefined;
    return jobs.map(({ id = '' }, index) => ({ id, status: refusals[index] ?? 'refused' }));
  }

  add(transaction: Transaction, name: string, jobs: NewJob[]): AddReply[] {
    /** Parents that have their mark. Looked up once in a call, because ten thousand children may name one parent. */
    const parents = new Set<string>();
    const linked: Linked[] = [];
    const replies = jobs.map((job): AddReply => {
      const queue = transaction.queue(job.queue ?? name);
      const { id, isNew } = this.#enter(transaction, queue, job);
      const child = { queue: queue.name, id };
      if (isNew && job.waitsForChildren === true) {
        this.#families.links.clear(queue, id);
        parents.add(refKey(child));
      }
      for (const parent of job.parents ?? []) {
        const row = isNew ? undefined : this.#families.find(transaction, child);
        if (row !== undefined) this.#families.adopt(row, parent);
        if (this.#link(transaction, parent, child, parents) && !isNew) linked.push({ child, parent });
      }
      return { id, status: isNew ? 'added' : 'duplicate' };
    });
    // A child that has ended must not release a parent whose other children come later in the call.
    for (const { child, parent } of linked) this.#families.applyToNewParent(transaction, child, parent);
    jobs.forEach((job, index) => {
      if (job.waitsForChildren === true) this.#releaseIfNone(transaction, job.queue ?? name, replies[index]?.id ?? '');
    });
    return replies;
  }

  #enter(transaction: Transaction, queue: QueueState, job: NewJob): { id: string; isNew: boolean } {
    const id = job.id ?? this.#entering.nextId(queue);
    const isNew = this.#entering.enter(transaction, queue, id, job);
    if (!isNew) queue.record('duplicated', id);
    return { id, isNew };
  }

  /** Returns whether the link is new. */
  #link(transaction: Transaction, parent: JobRef, child: JobRef, parents: Set<string>): boolean {
    const queue = transaction.queue(parent.queue);
    const key = refKey(parent);
    if (!parents.has(key)) {
      const row = this.#families.find(transaction, parent);
      if (row !== undefined) this.#families.begin(row);
      parents.add(key);
    }
    return this.#families.links.add(queue, parent.id, child);
  }

  #releaseIfNone(transaction: Transaction, name: string, id: string): void {
    const queue = transaction.queue(name);
    if ((this.#families.links.counts(queue, id)?.pending ?? 0) === 0) this.#families.release(transaction, queue, id);
  }

  #refusalsOf(transaction: Transaction, name: string, jobs: NewJob[]): (Refusal | undefined)[] {
    /** Jobs that stand before in the call, and whether the store has a job. */
    const [before, stored] = [new Set<string>(), new Map<string, boolean>()];
    const exists = (ref: JobRef): boolean => {
      const key = refKey(ref);
      const found = stored.get(key) ?? this.#families.find(transaction, ref) !== undefined;
      stored.set(key, found);
      return found;
    };
    return jobs.map(({ id, queue = name, parents = [], shares }) => {
      if (parents.some((parent) => !before.has(refKey(parent)) && !exists(parent))) return 'noParent';
      if (id === undefined) return undefined;
      before.add(refKey({ queue, id }));
      const row = parents.length === 0 || shares === true ? undefined : this.#families.find(transaction, { queue, id });
      const others = row === undefined ? [] : parentsOf(row).filter((one) => !parents.some((given) => isSameJob(given, one)));
      return others.some(exists) ? 'otherParent' : undefined;
    });
  }
}
