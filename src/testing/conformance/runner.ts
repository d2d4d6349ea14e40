// What the suite needs from the outside: a test runner of two functions, and a way to open the store under test.
import type { Capabilities } from '../../store/capabilities.js';
import type { NewSession, Store } from '../../store/contract/index.js';

/** vitest, node:test, mocha and jest all fit. Where `it` can skip, what a store cannot do is reported as skipped. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it: TestCase;
}

export interface TestCase {
  (name: string, body: () => Promise<void>): unknown;
  skip?: (name: string, body: () => Promise<void>) => unknown;
}

export interface StoreUnderTest {
  /** Opened. The suite uses a new queue for every test, so one database may serve many. */
  store: Store;
  /** Lets time pass on the store's clock: moves a manual one, waits for a real one. */
  advance(ms: number): Promise<void>;
  /** With a manual clock: moves the wall alone, and no time passes. */
  stepWall?: (ms: number) => void;
  /** Where the store is shared: a second, independent and opened connection to the same data. The suite closes it. */
  peer?: () => Promise<Store>;
  /** Where the store is durable: the same data, opened again after everything was closed. The suite closes it. */
  reopen?: () => Promise<Store>;
  /** Where the store has crash hints: opens a session from another process, which then dies. */
  orphan?: (session: NewSession) => Promise<void>;
  /** Lets go of everything; `store` may be closed already. */
  close(): Promise<void>;
}

export interface ConformanceOptions extends TestRunner {
  /** Names the store in the titles. */
  name: string;
  /** What the store says of itself: decides which tests are skipped, so it must be known before one is opened. */
  capabilities: Capabilities;
  open(): Promise<StoreUnderTest>;
  /**
   * 'manual': `advance` takes no time at all and `stepWall` is there. 'real' (default): `advance` waits.
   */
  clock?: 'manual' | 'real';
  /**
   * The unit of all durations, in ms (default 100): the shortest lock of the suite lasts three. On a slow server give more, since
   * claiming under such a lock and writing with it must fit into it.
   */
  unit?: number;
}
