// The session owners of a lock client, one for each lock duration and renewal interval. Each opens its session for the first lock.
// A session without locks stays open for a while, because locks come and go, and is then closed.
import type { Session } from '../session/session.js';
import type { SessionOwner } from '../session/session-owner.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

interface Kept {
  owner: SessionOwner;
  /** Number of locks bound to the session, and of requests that would be. */
  users: number;
  idle?: NodeJS.Timeout;
}

const MAX_IDLE_MS = 60_000;

export class SessionOwners {
  readonly #kept = new Map<string, Kept>();
  readonly #closings = new Set<Promise<void>>();
  readonly #make: (durationMs: number, renewMs: number) => SessionOwner;
  readonly #onError: (error: unknown) => void;

  constructor(make: (durationMs: number, renewMs: number) => SessionOwner, onError: (error: unknown) => void) {
    this.#make = make;
    this.#onError = onError;
  }

  /** Returns the session owner for these times. Its session stays open until the caller calls `done`. */
  use(durationMs: number, renewMs: number): { owner: SessionOwner; done(): void } {
    const key = `${durationMs} ${renewMs}`;
    let kept = this.#kept.get(key);
    if (kept === undefined) {
      kept = { owner: this.#make(durationMs, renewMs), users: 0 };
      this.#kept.set(key, kept);
    }
    const used = kept;
    used.users += 1;
    clearTimeout(used.idle);
    return { owner: used.owner, done: once(() => this.#done(used, Math.min(durationMs, MAX_IDLE_MS))) };
  }

  /** The store no longer knows this session. */
  drop(session: Session): void {
    for (const { owner } of this.#kept.values()) owner.drop(session);
  }

  /** Closes all sessions. The store hands back their locks. */
  async close(): Promise<void> {
    const open = [...this.#kept.values()];
    this.#kept.clear();
    for (const { idle } of open) clearTimeout(idle);
    await Promise.all(open.map(({ owner }) => owner.close()));
    await Promise.all(this.#closings);
  }

  #done(kept: Kept, idleMs: number): void {
    kept.users -= 1;
    if (kept.users > 0) return;
    kept.idle = setTimeout(() => {
      const closing = kept.owner
        .close()
        .catch(this.#onError)
        .then(() => void this.#closings.delete(closing));
      this.#closings.add(closing);
    }, idleMs).unref();
  }
}

function once(work: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    work();
  };
}
