// A session as the sandbox of its owner sees it: it reads the lock of one job and writes nothing. A thread reads the owner's memory. A
// process has memory of its own, which the owner's messages bring up to date.
import { systemClock } from '../runtime/clock.js';
import { Session } from './session.js';
import { type SessionBuffers, SessionMemory } from './session-memory.js';
import type { Moment } from './trust.js';

export class SeenSession extends Session {
  readonly #slot: number;
  /** The owner writes its own memory itself. */
  readonly #writes: boolean;

  constructor(queue: string, slot: number, buffers?: SessionBuffers) {
    super('', { queue, durationMs: 0 }, 0, systemClock, new SessionMemory(buffers));
    this.#slot = slot;
    this.#writes = buffers === undefined;
  }

  /** The owner says until when the lock with this fence can be trusted. */
  trust(fence: number, until: Moment): void {
    if (!this.#writes) return;
    this.memory.occupy(this.#slot, fence);
    this.memory.startTrust(until);
  }

  /** The owner says that the lock is lost. */
  lost(): void {
    if (this.#writes) this.memory.markLost();
  }

  override takeSlot(): number {
    return this.#slot;
  }

  /** The owner may have given the slot to the lock of another job. */
  override holds(slot: number, fence: number): boolean {
    return this.memory.holdsFence(slot, fence);
  }

  override returnSlot(): void {
    // The slot belongs to the owner.
  }
}
