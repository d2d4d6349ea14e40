// The memory store keeps everything in this process and loses it when the process ends. It serves tests and single processes. The
// other engines are compared with it, so it implements each sentence of the contract in the plainest way.
// The rest of Holdfast calls the memory store only through the contract. The store shares no object with its callers: it copies on
// the way in and out.
import type { Clock } from '../../runtime/clock.js';
import type { Capabilities } from '../capabilities.js';
import { Door } from '../door.js';
import { operations } from './operations.js';
import { Memory } from './state/memory.js';

export interface MemoryStoreOptions {
  clock?: Clock;
  /**
   * Calls that a worker may have in flight. Default 1: calls never wait in this store, so a second lane only costs. Tests of
   * parallel lanes set 2.
   */
  lanes?: number;
}

export class MemoryStore extends Door<Memory> {
  readonly capabilities: Capabilities;
  readonly #memory: Memory;

  constructor({ clock, lanes = 1 }: MemoryStoreOptions = {}, memory = new Memory(clock)) {
    super(operations);
    this.capabilities = {
      engine: 'memory',
      shared: false,
      durable: false,
      crashHints: false,
      inline: false,
      transactions: false,
      families: true,
      lanes,
    };
    this.#memory = memory;
    this.engine = memory;
  }

  describe(): undefined {
    return undefined;
  }

  protected start(): Memory {
    return this.#memory;
  }

  protected async stop(): Promise<void> {
    this.#memory.close();
  }
}
