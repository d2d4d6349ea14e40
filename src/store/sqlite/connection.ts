// The SQLite store: one file that all processes of a host may share. This class checks the options, and opens and closes the engine;
// operations.ts has the verbs. The rest of Holdfast calls the store only through the contract.
import path from 'node:path';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../../runtime/check.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import type { Capabilities } from '../capabilities.js';
import type { StoreDescriptor } from '../descriptor.js';
import { Door } from '../door.js';
import { toStoreError } from './driver/errors.js';
import { operations } from './operations.js';
import { type Engine, startEngine } from './state/engine.js';

export interface SqliteStoreOptions {
  path: string;
  clock?: Clock;
  /**
   * 'full' (default): acknowledged writes survive a power cut. 'normal': they survive a crash of the process, but a power cut may
   * lose the last commits.
   */
  synchronous?: 'full' | 'normal';
  /**
   * How long a call waits while another program holds the write lock, in ms (default 10,000). After that it rejects with
   * STORE_BUSY.
   */
  busyTimeoutMs?: number;
}

export class SqliteStore extends Door<Engine> {
  readonly capabilities: Capabilities = {
    engine: 'sqlite',
    shared: true,
    durable: true,
    crashHints: true,
    inline: false,
    transactions: true,
    families: true,
  };
  readonly #options: Required<SqliteStoreOptions>;

  constructor({ path: file, clock = systemClock, synchronous = 'full', busyTimeoutMs = 10_000 }: SqliteStoreOptions) {
    super(operations);
    if (typeof file !== 'string' || file === '') throw invalidOption('path', file, 'the path of a file');
    if (synchronous !== 'full' && synchronous !== 'normal') throw invalidOption('synchronous', synchronous, "'full' or 'normal'");
    checkInteger('busyTimeoutMs', busyTimeoutMs, { max: MAX_TIMER_MS });
    this.#options = { path: path.resolve(file), clock, synchronous, busyTimeoutMs };
  }

  get driver(): string | undefined {
    return this.engine?.driver;
  }

  describe(): StoreDescriptor | undefined {
    const { path: file, synchronous, busyTimeoutMs } = this.#options;
    return { engine: 'sqlite', options: { path: file, synchronous, busyTimeoutMs } };
  }

  protected async start(): Promise<Engine> {
    try {
      return await startEngine(this.#options);
    } catch (error) {
      throw toStoreError(error, this.#options.path);
    }
  }

  protected async stop(opened: Promise<Engine | undefined>, calls: Promise<void>): Promise<void> {
    const engine = await opened;
    await calls;
    engine?.close();
  }
}
