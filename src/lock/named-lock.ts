// A named lock as user code sees it. Its getters need no I/O and are correct inside a synchronous loop too, like those of a job's lock.
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

  /** True while the lock is certainly ours, as far as this process can know without a call. Once false, it never turns true again. */
  get held(): boolean {
    return this.#lock.held;
  }

  /** True while the lock is certainly ours at this moment. Unlike `held`, it may turn true again. */
  get isSure(): boolean {
    return this.#lock.isSure;
  }

  /** True until the lock is lost: no other session has it, unless the server lost sight of this process. */
  get trusted(): boolean {
    return this.#lock.trusted;
  }

  get token(): string {
    return this.#lock.token;
  }

  /** Pass the fence to every system that you write to under the lock. That system must refuse a fence smaller than one it has seen. */
  get fence(): number {
    return this.#lock.fence;
  }

  /** When trust ends without a renewal, in ms since the epoch on this host's clock. */
  get expiresAt(): number {
    return this.#lock.expiresAt;
  }

  /** For how many ms `held` stays true if the store sends no more replies; 0 once it is false. */
  get remainingMs(): number {
    return this.#lock.remainingMs;
  }

  /** Throws LOCK_LOST unless the lock is certainly held. */
  assert(): void {
    this.#lock.assert();
  }

  /** Aborted when the lock is lost, with the reason. */
  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  /** Releases the lock; the next in line gets it. Returns true if it was ours until now, false if it was lost before. Idempotent. */
  release(): Promise<boolean> {
    this.#released ??= this.#giveBack();
    return this.#released;
  }

  /** For `await using`: releases the lock at the end of the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
