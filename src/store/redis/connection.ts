// The Redis store: many machines on one Redis, Valkey or Redis Cluster. This class checks the options, and opens and closes the
// connection; operations.ts has the verbs. The rest of Holdfast calls the store only through the contract.
import { within } from '../../runtime/within.js';
import type { Capabilities } from '../capabilities.js';
import type { StoreDescriptor } from '../descriptor.js';
import { Door } from '../door.js';
import { type CheckedOptions, checkOptions, type RedisStoreOptions } from './driver/options.js';
import type { Server } from './driver/server-check.js';
import { threadOptions } from './driver/thread-options.js';
import { operations } from './operations.js';
import { makeEngine, type Engine } from './driver/engine.js';

/**
 * Outcomes and claims in one call. With 150, a call blocks Redis for about 2 ms. With 1,000 it was 12 ms, and the jobs per second differed
 * by less than the noise.
 */
const BATCH = 150;
/** How long `close` waits for earlier calls, in ms; at most the commandTimeout. */
const CLOSING_PATIENCE_MS = 5000;

export class RedisStore extends Door<Engine> {
  readonly driver = 'ioredis';
  readonly capabilities: Capabilities = {
    engine: 'redis',
    shared: true,
    durable: true,
    crashHints: true,
    fallibleHints: true,
    inline: false,
    transactions: false,
    families: true,
    batch: BATCH,
    // About 4 ms of Redis.
    bareBatch: 1_000,
    lanes: 2,
  };
  readonly #options: CheckedOptions;
  readonly #engine: Engine;

  constructor(options: RedisStoreOptions = {}) {
    super(operations);
    this.#options = checkOptions(options);
    this.#engine = makeEngine(this.#options);
  }

  describe(): StoreDescriptor | undefined {
    return { engine: 'redis', options: threadOptions(this.#options) };
  }

  get client(): object | undefined {
    return this.#engine.link.client;
  }

  /** Version and settings of the server, as read when the store last connected; undefined before. */
  get server(): Server | undefined {
    return this.#engine.server;
  }

  protected async start(): Promise<Engine> {
    await this.#engine.link.open();
    return this.#engine;
  }

  /** Does not wait for a connection that is being made: closing the link ends it. */
  protected async stop(_opened: Promise<unknown>, calls: Promise<void>): Promise<void> {
    const { wake, registry, link } = this.#engine;
    wake.close();
    await within(Math.min(CLOSING_PATIENCE_MS, this.#options.commandTimeout), Promise.all([calls, registry.written()]));
    link.close();
  }
}
