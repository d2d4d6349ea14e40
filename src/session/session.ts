// A lease on the store, of a worker or of a holder of locks, as its owner sees it: when trust in it ends, and the slots of the locks that hang on it.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../runtime/clock.js';
import { CRASH_GRACE_MS, type Owner, type Store } from '../store/contract/index.js';
import { INSTANCE_ID } from './instance.js';
import { SessionMemory } from './session-memory.js';
import { between, now, trustUntil, type Moment } from './trust.js';

export interface SessionSettings {
  queue: string;
  name: string;
  durationMs: number;
  maxStalls: number;
  /** How long it lives on after a hint that this process died. */
  graceMs?: number;
  /** How many jobs its owner is willing to run at once; 0 (the default) for one that only holds locks. */
  slots?: number;
  /** The running program that it belongs to; this process unless named otherwise. */
  instance?: string;
}

/** A shorter grace leaves no time to hear of it again and again, on a machine that has other things to do. */
const SHORTEST_HEARING_MS = 500;

export class Session {
  readonly id: string;
  readonly queue: string;
  readonly durationMs: number;
  /** Within what time it has to hear that nobody takes its owner for dead, while it holds locks; 0: it need not. */
  readonly graceMs: number;
  readonly memory = new SessionMemory();
  readonly #clock: Clock;
  readonly #free: number[] = [];
  #used = 0;
  #calls = 0;

  private constructor(id: string, { queue, durationMs }: SessionSettings, graceMs: number, clock: Clock) {
    this.id = id;
    this.queue = queue;
    this.durationMs = durationMs;
    this.graceMs = graceMs;
    this.#clock = clock;
  }

  static async open(store: Store, settings: SessionSettings, clock: Clock): Promise<Session> {
    const { queue, durationMs, maxStalls, graceMs = CRASH_GRACE_MS, name, instance = INSTANCE_ID } = settings;
    const session = new Session(randomUUID(), settings, hearingMs(store, graceMs, durationMs), clock);
    const sentAt = now(clock);
    session.memory.slots = settings.slots ?? 0;
    const { slots } = session.memory;
    const owner: Owner = { host: hostname(), pid: process.pid, name, instance };
    await store.openSession({ queue, id: session.id, owner, durationMs, maxStalls, slots, graceMs });
    session.memory.startTrust(trustUntil(sentAt, durationMs));
    if (session.graceMs > 0) session.memory.startHearing(trustUntil(sentAt, session.graceMs));
    return session;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Milliseconds that trust lasts unless it is renewed; not above 0: over. */
  trustedForMs(): number {
    return this.memory.alive ? between(now(this.#clock), this.memory.trustedUntil) : 0;
  }

  /** The store has granted something to it, by a call that left at `sentAt` or later: then nobody took its owner for dead. */
  granted(sentAt: Moment): void {
    this.memory.extendHearing(trustUntil(sentAt, this.graceMs));
  }

  /** Nobody can have been let in because the server lost sight of this process. */
  get isHeard(): boolean {
    const { heardUntil } = this.memory;
    return heardUntil === undefined || between(now(this.#clock), heardUntil) > 0;
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

/** A hint that cannot be wrong, or leaves no less than the lock has anyway, is no reason to ask. */
function hearingMs({ capabilities }: Store, graceMs: number, durationMs: number): number {
  const asks = capabilities.crashHints && capabilities.fallibleHints === true;
  return asks && graceMs >= SHORTEST_HEARING_MS && graceMs < durationMs ? graceMs : 0;
}
