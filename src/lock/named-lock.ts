// A named lock in a user's hand. What it shows needs no I/O and is true inside a synchronous loop too, as with the lock of a job.
import type { HeldLock } from '../session/held-lock.js';

export class NamedLock {
  readonly name: string;
  readonly #lock: HeldLock;
  readonly #giveBack: () => Promise<boolean>;
  #released: Promise<boolean> | undefined;

  constructor(lock: HeldLock, giveBack: () => Promise<boolean>) {
    this.name = lock.jobId;
    this.#lock = lock;
    this.#giveBack = giveBack;
  }

  /** Still ours, as far as anyone can know without asking the store: once false, it never turns true again. */
  get held(): boolean {
    return this.#lock.held;
  }

  /** The same for this moment alone: it may turn true again. */
  get isSure(): boolean {
    return this.#lock.isSure;
  }

  /** Not lost: nobody else has it, unless the server lost sight of this process. */
  get trusted(): boolean {
    return this.#lock.trusted;
  }

  get token(): string {
    return this.#lock.token;
  }

  /** Hand this to every system that you write to under the lock; it must refuse a smaller one than it has seen. */
  get fence(): number {
    return this.#lock.fence;
  }

  /** When trust ends unless the lock is renewed before, in ms since the epoch on this host's clock. */
  get expiresAt(): number {
    return this.#lock.expiresAt;
  }

  /** Aborted when the lock is lost, with the reason. */
  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  /** Gives it back; the next in line gets it. True: it was ours until now. False: it had been lost before. Idempotent. */
  release(): Promise<boolean> {
    this.#released ??= this.#giveBack();
    return this.#released;
  }
}
