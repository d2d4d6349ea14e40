// What a store can carry, as data. The conformance suite skips what an engine cannot do and prints the reason.
import { HoldfastError } from '../errors.js';

export interface Capabilities {
  /** Engine name for messages and docs: 'memory', 'sqlite' … */
  engine: string;
  /** More than one process can share it. */
  shared: boolean;
  /** Acknowledged writes survive a crash of the process. */
  durable: boolean;
  /** `probe` can tell that an owner died before its session expires. */
  crashHints: boolean;
  /**
   * It looks at a connection, and may take a living owner for a dead one that has lost it. Whoever is granted something is no longer
   * under suspicion then: see `unsuspected`.
   */
  fallibleHints?: boolean;
  /** `add` runs the handler before it answers (for tests), so workers do not limit their concurrency. */
  inline: boolean;
  /** `add` can join a transaction of the caller's. */
  transactions: boolean;
  /** How many items a call may carry where its caller can choose: more would hold the store up for others. Default MAX_BATCH. */
  batch?: number;
  /**
   * How many calls a worker may have in flight: see `Call`. More than 1 where a worker and its store else wait for one another. Default 1.
   * With two, Redis did 22 % more jobs at concurrency 100 and 33 % at 10; PostgreSQL 3 % more and 23 % fewer, SQLite 4 to 5 % fewer.
   */
  lanes?: number;
}

/** No call carries more items than this on any store. */
export const MAX_BATCH = 1000;

export function batchOf({ batch = MAX_BATCH }: Capabilities): number {
  return Math.min(batch, MAX_BATCH);
}

/** For `add` of a store that cannot join a transaction: adding outside of it would be found out at the first rollback. */
export function refuseTransaction(engine: string, transaction: unknown): void {
  if (transaction === undefined) return;
  throw new HoldfastError(
    'OPTION_UNSUPPORTED',
    `The ${engine} store cannot add jobs inside a transaction of yours: only a PostgreSQL store can, in its own database. Add the job after the commit, or write a row in the transaction from which a later step adds it.`,
    { option: 'transaction', store: engine },
  );
}
