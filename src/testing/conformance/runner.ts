// The inputs of the suite: a test runner of two functions, and a way to open the store under test.
import { checkInteger, invalidOption } from '../../runtime/check.js';
import type { Capabilities } from '../../store/capabilities.js';
import type { NewSession, Store } from '../../store/contract/index.js';
import type { Level } from './levels.js';

/** vitest, node:test, mocha and jest all fit. If `it` can skip, the suite reports tests of missing capabilities as skipped. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it: TestCase;
}

export interface TestCase {
  (name: string, body: () => Promise<void>): unknown;
  skip?: (name: string, body: () => Promise<void>) => unknown;
}

export interface StoreUnderTest {
  /** The store, already open. The suite uses a new queue for every test, so one database may serve many tests. */
  store: Store;
  /** Lets time pass on the store's clock: moves a manual clock, or waits for a real one. */
  advance(ms: number): Promise<void>;
  /** With a manual clock: moves the wall clock alone, without time passing. */
  stepWall?: (ms: number) => void;
  /** If the store is shared: opens a second, independent connection to the same data. The suite closes it. */
  peer?: () => Promise<Store>;
  /** If the store is durable: opens the same data again after everything was closed. The suite closes it. */
  reopen?: () => Promise<Store>;
  /** If the store has crash hints: opens a session from another process, which then dies. */
  orphan?: (session: NewSession) => Promise<void>;
  /** Releases everything. `store` may already be closed. */
  close(): Promise<void>;
}

export interface ConformanceOptions extends TestRunner {
  /** Name of the store in the test titles. */
  name: string;
  /** The capabilities of the store. They decide which tests are skipped, so they must be known before a store is opened. */
  capabilities: Capabilities;
  open(): Promise<StoreUnderTest>;
  /** 'manual': `advance` takes no real time, and `stepWall` is present. 'moved': the same without `stepWall`. 'real' (default): `advance` waits. */
  clock?: 'manual' | 'moved' | 'real';
  /**
   * The unit of all durations, in ms (default 100). The shortest lock of the suite lasts three units. Increase it for a slow
   * server, because a claim and a write must fit into such a lock.
   */
  unit?: number;
  /**
   * The levels to run, each together with the levels that it builds on (`LEVELS`). Default: all. A store is complete when it passes all;
   * `['core']` is for a store that is being written.
   */
  levels?: readonly Level[];
}

/** Throws INVALID_OPTION: another clock or unit would run tests that wait for nothing. */
export function checkClock({ clock = 'real', unit = 100 }: Pick<ConformanceOptions, 'clock' | 'unit'>): void {
  if (!['manual', 'moved', 'real'].includes(clock)) throw invalidOption('clock', clock, "'manual', 'moved' or 'real'");
  checkInteger('unit', unit, { min: 1 });
}
