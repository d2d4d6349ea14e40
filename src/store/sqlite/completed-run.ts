// Completing a run of jobs with one statement: those that were added one after the other, claimed in one call and completed in that order,
// as the jobs of a backlog of short ones are. Their ids, fences and rows count up by one, so that three numbers say which row must
// carry which id and which fence: every job of a run is checked as closely as one that is settled alone.
// Measured, a whole call that settles, with its commit: 6.1 µs a job in a run of 100 instead of 8.6 µs with a statement for each, and 10.1 µs
// instead of 11.3 µs in a run of 20. In one of 10 there was no difference, and in one of 5 it took 4 % more.
import { tokenOf } from '../../job/lock.js';
import type { Outcome } from '../../job/outcome.js';
import type { Database, Statement } from './driver.js';
import { splitToken } from './job-row.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';

export type Completed = Extract<Outcome, { kind: 'completed' }>;

export interface Run {
  outcomes: Completed[];
  firstId: number;
  session: string;
  firstFence: number;
  value: string;
}

/** A shorter one is not worth the look for its ends. */
const SHORTEST = 16;

/** The longest run that begins with this outcome, if any does. Only for queues that know no lock keys. */
export function runFrom(outcomes: readonly Outcome[], start: number): Run | undefined {
  const first = outcomes[start];
  if (first?.kind !== 'completed' || first.keep.count === 0 || outcomes.length - start < SHORTEST) return undefined;
  const firstId = Number(first.jobId);
  // Also of its last job, whichever that is: beyond, counting up would not be exact.
  if (!Number.isSafeInteger(firstId + outcomes.length) || String(firstId) !== first.jobId) return undefined;
  const { session, fence: firstFence } = splitToken(first.token);
  const run: Run = { outcomes: [first], firstId, session, firstFence, value: first.value };
  for (let next = outcomes[start + 1]; next !== undefined && goesOn(run, next); next = outcomes[start + run.outcomes.length]) {
    run.outcomes.push(next);
  }
  return run.outcomes.length < SHORTEST ? undefined : run;
}

function goesOn({ outcomes: { length }, firstId, session, firstFence, value }: Run, next: Outcome): next is Completed {
  return (
    next.kind === 'completed' &&
    next.value === value &&
    next.keep.count !== 0 &&
    next.jobId === String(firstId + length) &&
    next.token === tokenOf(session, firstFence + length)
  );
}

export class CompletedRuns {
  readonly #ends: Statement<[first: number, last: number]>;
  readonly #complete: Statement;
  readonly #completed: Statement<[job: number]>;

  constructor(db: Database) {
    this.#ends = db.prepare(
      'SELECT a.job, b.job FROM jobs AS a CROSS JOIN jobs AS b WHERE a.queue = ? AND a.id = ? AND b.queue = a.queue AND b.id = ?',
    );
    // CAST: numbers may be bound as REAL, and the text of a REAL ends in ".0".
    this.#complete = db.prepare(
      `UPDATE jobs SET state = ${STATE.completed}, ord = job + CAST(? AS INTEGER), finishedOn = ?, attemptsMade = attemptsMade + 1,
         claimSeq = NULL, endsAt = NULL, timed = 0, returnvalue = ?
       WHERE job BETWEEN ? AND ? AND queue = ? AND state = ${STATE.active} AND session = ? AND fence = job + CAST(? AS INTEGER)
         AND id = CAST(job + CAST(? AS INTEGER) AS TEXT)`,
    );
    this.#completed = db.prepare(
      `SELECT job FROM jobs WHERE job BETWEEN ? AND ? AND queue = ? AND state = ${STATE.completed} AND ord = job + ?`,
    );
  }

  /** Tells of each outcome of the run whether its job is completed now. Those that are not are to be settled one by one. */
  complete(queue: QueueState, { outcomes, firstId, session, firstFence, value }: Run, now: number): boolean[] {
    const { length } = outcomes;
    const [first, last] = this.#ends.get(queue.queue, String(firstId), String(firstId + length - 1)) ?? [0, 0];
    // Not side by side: jobs of another queue were added between them.
    if (last - first !== length - 1) return outcomes.map(() => false);
    const place = queue.back + 1 - first;
    queue.back += length;
    const changed = this.#complete.run(place, now, value, first, last, queue.queue, session, firstFence - first, firstId - first);
    if (changed === length) return outcomes.map(() => true);
    // Some locks are lost. No row but those of now has such a place.
    const completed = new Set(this.#completed.all(first, last, queue.queue, place).map(([job]) => job));
    return outcomes.map((_, index) => completed.has(first + index));
  }
}
