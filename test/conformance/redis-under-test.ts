// A Redis store as the conformance suite wants it: on a real server, under keys that no other test uses, with a clock that the suite moves.
import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from '../../src/store/redis/index.js';
import type { StoreUnderTest } from '../../src/testing/index.js';
import { type ShiftedClock, shiftedClock } from '../support/servers/redis-clock.js';
import { openAndDie } from './orphan.mjs';

/** No test waits for it, and the shortest lock, three of them, goes through the pauses of a busy machine. In ms. */
export const UNIT = 400;

export class RedisUnderTest {
  /** All keys of this run begin with it, on whatever server. */
  readonly #name = `conformance-${randomUUID()}`;
  readonly #url: string;
  readonly #client: Redis | Cluster;
  readonly #clock: ShiftedClock;

  constructor(url: string, kind: 'single' | 'cluster') {
    this.#url = url;
    this.#client = kind === 'single' ? new Redis(url) : new Cluster([url]);
    this.#clock = shiftedClock(this.#client, this.#name);
  }

  async open(): Promise<StoreUnderTest> {
    const options = { url: this.#url, prefix: `${this.#name}-${randomUUID()}` };
    const connect = async (): Promise<RedisStore> => {
      const store = new RedisStore(options);
      await store.open();
      return store;
    };
    // An orphan is a process with the clock of Redis itself: tests make theirs before they let time pass.
    let ahead = 0;
    await this.#clock.shift(ahead);
    const store = await connect();
    return {
      store,
      advance: (ms) => this.#clock.shift((ahead += ms)),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie('redis-orphan.mjs', { options, session }),
      close: () => store.close(),
    };
  }

  /** Takes away what the run has left: a server that was given lives on. */
  async close(): Promise<void> {
    const nodes = this.#client instanceof Cluster ? this.#client.nodes('master') : [this.#client];
    for (const node of nodes) {
      for (const match of [`{${this.#name}*`, `${this.#name}*`]) {
        for await (const keys of node.scanStream({ match, count: 1_000 }) as AsyncIterable<string[]>) {
          await Promise.all(keys.map((key) => node.unlink(key)));
        }
      }
    }
    this.#client.disconnect();
  }
}
