// Finds the jobs that a claim takes: in order, in turns of groups, or by id. Their bytes must fit into one reply.
import type { JobRecord } from '../../../job/record.js';
import { REPLY_BYTES } from '../../budget.js';
import type { ClaimRequest } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { AT, type FoundRow, groupOf, type JobRow, type MemberRow, toNewRecord, toRecord, type WaitingRow } from '../record.js';
import type { Groups } from './groups.js';
import type { KeyGroups } from './key-groups.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';
import { type ClaimSize, Turns, TurnStatements } from './turns.js';

/** A job that may be claimed, as it was before the claim. */
export interface Candidate {
  job: number;
  record: JobRecord;
  extras: string | null;
}

export interface Found {
  list: Candidate[];
  /** True if the byte budget left out further jobs, or the claim stopped before it had seen all groups. */
  more: boolean;
}

export class Candidates {
  readonly #keyGroups: KeyGroups;
  readonly #groups: Groups;
  readonly #turns: TurnStatements;
  readonly #waiting: Statement<WaitingRow>;
  readonly #named: Statement<FoundRow>;
  readonly #row: Statement<JobRow>;
  readonly #bytes: Statement<[number]>;

  constructor(db: Database, keyGroups: KeyGroups, groups: Groups) {
    this.#keyGroups = keyGroups;
    this.#groups = groups;
    this.#turns = new TurnStatements(db);
    this.#waiting = sql(db, 'waiting-jobs', 'longest queue count');
    this.#named = sql(db, 'find-job', 'queue id');
    this.#row = sql(db, 'read-job', 'job');
    this.#bytes = sql(db, 'bytes-of-job', 'job');
  }

  /** `canBeEmpty`: the first job may be left out too, if it is large. */
  inOrder(transaction: Transaction, queue: QueueState, count: number, canBeEmpty: boolean): Found {
    const most = Math.min(count, queue.allWaiting);
    // The limit on the size of each `data` makes all rows of this query fit into one reply.
    const longest = Math.floor(REPLY_BYTES / Math.max(1, most));
    const rows = most === 0 ? [] : this.#waiting.all(longest, queue.queue, most);
    if (queue.rules.groups !== undefined) return this.#inTurn(transaction, queue, rows, { count, longest }, canBeEmpty);
    const list: Candidate[] = [];
    let left = REPLY_BYTES;
    for (const row of rows) {
      const data = dataOf(row);
      left -= data?.length ?? this.#bytesIn(row[0]);
      if (left < 0 && (list.length > 0 || canBeEmpty)) return { list, more: true };
      list.push(data === undefined ? this.#candidate(row[0]) : newCandidate(row, data));
    }
    return { list, more: false };
  }

  /** `plain`: the first jobs without a group. */
  #inTurn(transaction: Transaction, queue: QueueState, plain: WaitingRow[], size: ClaimSize, canBeEmpty: boolean): Found {
    const turns = new Turns(this.#turns, this.#groups, transaction, queue, size);
    const found: Found = { list: [], more: false };
    let left = REPLY_BYTES;
    let taken = 0;
    while (found.list.length < size.count) {
      const row = plain[taken];
      const next = turns.next(row !== undefined);
      const job = next === 'plain' ? row : next;
      found.more = turns.isCut;
      if (next === undefined || job === undefined) break;
      const data = dataOf(job);
      left -= data?.length ?? this.#bytesIn(job[0]);
      found.more = left < 0 && (found.list.length > 0 || canBeEmpty);
      if (found.more) break;
      found.list.push(data === undefined ? this.#candidate(job[0]) : newCandidate(job, data));
      if (next === 'plain') taken += 1;
      turns.take(next);
    }
    turns.end();
    return found;
  }

  /**
   * Returns the named jobs that may be claimed. `promote` moves a due job to waiting. Their keys and groups are arranged later, before
   * the next claim or the commit.
   */
  byId(
    transaction: Transaction,
    queue: QueueState,
    { jobIds = [], count }: ClaimRequest,
    promote: (row: FoundRow) => void,
  ): Found {
    const taken = new Map<string, number>();
    const jobs = new Set<number>();
    let left = REPLY_BYTES;
    let more = false;
    for (const jobId of jobIds) {
      const row = jobs.size < count && !more ? this.#named.get(queue.queue, jobId) : undefined;
      if (row === undefined) continue;
      const { [AT.job]: job, [AT.key]: key, [AT.state]: state, [AT.dueAt]: dueAt } = row;
      const isDue = state === STATE.delayed && dueAt !== null && dueAt <= transaction.now;
      if (isDue) promote(row);
      else if (state !== STATE.waiting && state !== STATE.behind) continue;
      if (jobs.has(job) || !this.#isFree(queue, row, taken)) continue;
      left -= this.#bytesIn(job);
      more = left < 0 && jobs.size > 0;
      if (more) continue;
      jobs.add(job);
      queue.touch(key);
      const name = nameOf(row);
      if (name !== undefined) taken.set(name, (taken.get(name) ?? 0) + 1);
    }
    return { list: [...jobs].map((job) => this.#candidate(job)), more };
  }

  /** Returns whether the key of a job is free, or its group has a place. `taken`: how many jobs of each the claim has taken. */
  #isFree(queue: QueueState, row: FoundRow, taken: ReadonlyMap<string, number>): boolean {
    const group = groupOf(row);
    const count = taken.get(nameOf(row) ?? '') ?? 0;
    if (group !== undefined) return this.#groups.mayTake(queue, group, count);
    const key = row[AT.key];
    return key === null || (count === 0 && !this.#keyGroups.isTaken(queue, key));
  }

  #candidate(job: number): Candidate {
    const row = this.#row.get(job) as JobRow;
    return { job, record: toRecord(row), extras: row.at(-1) as string | null };
  }

  #bytesIn(job: number): number {
    return this.#bytes.get(job)?.[0] ?? 0;
  }
}

function newCandidate(row: WaitingRow | MemberRow, data: string): Candidate {
  return { job: row[0], record: toNewRecord(row, data), extras: row[8] };
}

/** Returns the data of a job if its row has all that a record of the job needs. */
function dataOf(row: WaitingRow | MemberRow): string | undefined {
  return row[7] === 0 ? (row[3] ?? undefined) : undefined;
}

/** Returns a name for the key or the group of a job: no key has the name of a group. */
function nameOf(row: FoundRow): string | undefined {
  const group = groupOf(row);
  if (group !== undefined) return `group ${group}`;
  return row[AT.key] === null ? undefined : `key ${row[AT.key]}`;
}
