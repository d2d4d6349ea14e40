// The capabilities of a store, as data. The conformance suite skips what an engine cannot do and prints the reason.
import { HoldfastError } from '../errors.js';
import type { NewJob } from '../job/record.js';

export interface Capabilities {
  /** Engine name for messages and docs: 'memory', 'sqlite' … */
  engine: string;
  /** More than one process can share the store. */
  shared: boolean;
  /** Acknowledged writes survive a crash of the process. */
  durable: boolean;
  /** `probe` can find out that an owner died before its session expires. */
  crashHints: boolean;
  /**
   * The hints watch a connection, so an owner that is alive but lost its connection may be taken for dead. If the store grants something
   * to a session, that session is not under suspicion: see `checkSessions`.
   */
  fallibleHints?: boolean;
  /** `add` runs the handler before it returns (for tests), so workers do not limit their concurrency. */
  inline: boolean;
  /** `add`, `settle` and `write` can join the caller's transaction. */
  transactions: boolean;
  /** Jobs may have parents and children: see the file `families` of the contract. */
  families?: boolean;
  /** How many items a call may carry if its caller can choose: more would block the store for others. Default MAX_BATCH. */
  batch?: number;
  /** How many jobs an `add` may carry if all are bare (marks.ts): they cost a fraction of others. Default: as `batch`. */
  bareBatch?: number;
  /**
   * How many calls a worker may have in flight: see `Call`. More than 1 if worker and store would otherwise wait for each other. Default 1.
   * With two, Redis did 22 % more jobs at concurrency 100 and 33 % at 10; PostgreSQL 3 % more and 23 % fewer, SQLite 4 to 5 % fewer.
   */
  lanes?: number;
}

/** The most items in one call, on any store. */
export const MAX_BATCH = 1000;

export function batchOf({ batch = MAX_BATCH }: Capabilities): number {
  return Math.min(batch, MAX_BATCH);
}

/** The same for an `add` of bare jobs. */
export function bareBatchOf({ bareBatch, ...capabilities }: Capabilities): number {
  return bareBatch === undefined ? batchOf(capabilities) : Math.min(bareBatch, MAX_BATCH);
}

/** Throws if a transaction was passed to a store that cannot join one. If it were ignored, a rollback would leave the job in the queue. */
export function refuseTransaction(engine: string, transaction: unknown): void {
  if (transaction === undefined) return;
  throw new HoldfastError(
    'OPTION_UNSUPPORTED',
    `The ${engine} store cannot join a transaction of yours: a PostgreSQL store can, in its own database, and a SQLite store in its own file. Make the call after the commit, or write a row in the transaction from which a later step makes it.`,
    { option: 'transaction', store: engine },
  );
}

/** Throws if a job has a parent, children or a dead letter queue, and the store would ignore that. */
export function refuseFamilies({ engine, families }: Capabilities, jobs: NewJob[]): void {
  if (families === true) return;
  const isOfFamily = ({ parents, waitsForChildren, deadLetter }: NewJob): boolean =>
    parents !== undefined || waitsForChildren === true || deadLetter !== undefined;
  if (!jobs.some(isOfFamily)) return;
  throw new HoldfastError(
    'OPTION_UNSUPPORTED',
    `The ${engine} store has no flows and no dead letters: leave out parent, children and deadLetter, or use another store.`,
    { option: 'parent', store: engine },
  );
}
