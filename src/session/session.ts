// A lease on the store, as its owner (a worker or a lock client) sees it: the trust deadline, and the slots of the locks bound to it.
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
  /** How long the session lives on after a hint that this process died, in ms. Default CRASH_GRACE_MS. */
  graceMs?: number;
  /** How many jobs the owner can run at once. Default 0: the owner only holds locks. */
  slots?: number;
  /** The running program that the session belongs to. Default: the id of this process. */
  instance?: string;
}

/** Shortest grace, in ms, with suspicion checks. A shorter grace leaves no time for repeated checks on a busy machine. */
const SHORTEST_CONFIRMATION_MS = 500;

export class Session {
  readonly id: string;
  readonly queue: string;
  readonly durationMs: number;
  /** While the session holds locks, the store must confirm every `graceMs` that the session is not under suspicion. 0: no check needed. */
  readonly graceMs: number;
  readonly memory: SessionMemory;
  readonly #clock: Clock;
  readonly #free: number[] = [];
  #used = 0;
  #calls = 0;

  protected constructor(
    id: string,
    { queue, durationMs }: Pick<SessionSettings, 'queue' | 'durationMs'>,
    graceMs: number,
    clock: Clock,
    memory = new SessionMemory(),
  ) {
    this.id = id;
    this.queue = queue;
    this.durationMs = durationMs;
    this.graceMs = graceMs;
    this.#clock = clock;
    this.memory = memory;
  }

  static async open(store: Store, settings: SessionSettings, clock: Clock): Promise<Session> {
    const { queue, durationMs, maxStalls, graceMs = CRASH_GRACE_MS, name, instance = INSTANCE_ID } = settings;
    const session = new Session(randomUUID(), settings, confirmationMs(store, graceMs, durationMs), clock);
    const sentAt = now(clock);
    session.memory.slots = settings.slots ?? 0;
    const { slots } = session.memory;
    const owner: Owner = { host: hostname(), pid: process.pid, name, instance };
    await store.openSession({ queue, id: session.id, owner, durationMs, maxStalls, slots, graceMs });
    session.memory.startTrust(trustUntil(sentAt, durationMs));
    if (session.graceMs > 0) session.memory.startConfirming(trustUntil(sentAt, session.graceMs));
    return session;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Returns how many ms trust lasts without a renewal. 0 or less: trust is over. */
  trustedForMs(): number {
    return this.memory.alive ? between(now(this.#clock), this.memory.trustedUntil) : 0;
  }

  /** Called when the store has granted something to the session in a call sent at `sentAt` or later: the owner was not under suspicion. */
  granted(sentAt: Moment): void {
    this.memory.extendConfirmation(trustUntil(sentAt, this.graceMs));
  }

  /** True while the server cannot have granted our locks to another session because it lost the connection of this process. */
  get isConfirmed(): boolean {
    return this.confirmedForMs() > 0;
  }

  /** For how many ms `isConfirmed` stays true if the store sends no more replies. */
  confirmedForMs(): number {
    const { confirmedUntil } = this.memory;
    return confirmedUntil === undefined ? Number.POSITIVE_INFINITY : between(now(this.#clock), confirmedUntil);
  }

  get trustedUntil(): Moment {
    return this.memory.trustedUntil;
  }

  /** Returns the next call number. Numbers count per session: a number used by another session means nothing under this one. */
  nextSeq(): number {
    this.#calls += 1;
    return this.#calls;
  }

  /** Takes a slot for the fence. If all slots are in use, the memory grows, and `onGrown` gets the new block. */
  takeSlot(fence: number, onGrown: (block: SharedArrayBuffer) => void, isAhead = false): number {
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.memory.capacity) onGrown(this.memory.addBlock());
    this.memory.occupy(slot, fence, isAhead);
    return slot;
  }

  /** True unless the lock in the slot was lost. The slot is the lock's own until it is returned. */
  holds(slot: number, _fence: number): boolean {
    return this.memory.holds(slot);
  }

  returnSlot(slot: number): void {
    this.memory.vacate(slot);
    this.#free.push(slot);
  }
}

/** Returns the grace that needs suspicion checks, or 0. A hint that is never wrong, or a grace not shorter than the lock, needs none. */
function confirmationMs({ capabilities }: Store, graceMs: number, durationMs: number): number {
  const asks = capabilities.crashHints && capabilities.fallibleHints === true;
  return asks && graceMs >= SHORTEST_CONFIRMATION_MS && graceMs < durationMs ? graceMs : 0;
}
