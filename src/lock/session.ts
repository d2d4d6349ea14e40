// A lease on the store, of a worker or of a holder of locks, as its owner sees it: when trust in it ends, and the slots of the locks that hang on it.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../runtime/clock.js';
import type { Owner, Store } from '../store/contract.js';
import { INSTANCE_ID } from './instance.js';
import { SessionMemory } from './session-memory.js';
import { between, now, trustUntil, type Moment } from './trust.js';

export interface SessionSettings {
  queue: string;
  name: string;
  durationMs: number;
  maxStalls: number;
  /** How many jobs its owner is willing to run at once; 0 (the default) for one that only holds locks. */
  slots?: number;
  /** The running program that it belongs to; this process unless named otherwise. */
  instance?: string;
}

export class Session {
  readonly id: string;
  readonly queue: string;
  readonly durationMs: number;
  readonly memory = new SessionMemory();
  readonly #clock: Clock;
  readonly #free: number[] = [];
  #used = 0;
  #calls = 0;

  private constructor(id: string, { queue, durationMs }: SessionSettings, clock: Clock) {
    this.id = id;
    this.queue = queue;
    this.durationMs = durationMs;
    this.#clock = clock;
  }

  static async open(store: Store, settings: SessionSettings, clock: Clock): Promise<Session> {
    const session = new Session(randomUUID(), settings, clock);
    const sentAt = now(clock);
    const { queue, durationMs, maxStalls, name, instance = INSTANCE_ID } = settings;
    session.memory.slots = settings.slots ?? 0;
    const { slots } = session.memory;
    const owner: Owner = { host: hostname(), pid: process.pid, name, instance };
    await store.openSession({ queue, id: session.id, owner, durationMs, maxStalls, slots });
    session.memory.startTrust(trustUntil(sentAt, durationMs));
    return session;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Milliseconds that trust lasts unless it is renewed; not above 0: over. */
  trustedForMs(): number {
    return this.memory.alive ? between(now(this.#clock), this.memory.trustedUntil) : 0;
  }

  get trustedUntil(): Moment {
    return this.memory.trustedUntil;
  }

  /** Calls are numbered for each session: a number that another session has used means nothing under this one. */
  nextSeq(): number {
    this.#calls += 1;
    return this.#calls;
  }

  /** `onGrown` gets a new block of shared memory when the slots have run out. */
  takeSlot(fence: number, onGrown: (block: SharedArrayBuffer) => void): number {
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.memory.capacity) onGrown(this.memory.addBlock());
    this.memory.occupy(slot, fence);
    return slot;
  }

  returnSlot(slot: number): void {
    this.memory.vacate(slot);
    this.#free.push(slot);
  }
}
