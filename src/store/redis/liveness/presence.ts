// The crash hint. Each session names a connection that vouches for it: the connection that opened or last renewed the session. When a
// process dies, in whatever way, Redis drops its connection, and suspicion checks (probe.ts) find that the connection is gone. A living
// process that lost its connection reports its new connection as soon as it has one.
import type { Runner } from '../driver/runner.js';

const TOLD_AT_ONCE = 200;

export class Presence {
  readonly #run: Runner;
  readonly #sessions = new Map<string, Set<string>>();
  #current: string | undefined;
  /** The last connection that this process reported: its sessions may still name it. */
  #before: string | undefined;

  constructor(run: Runner) {
    this.#run = run;
  }

  /** The connection that vouches for sessions now; undefined before the first connection, or if the Redis user may not read its id. */
  get current(): string | undefined {
    return this.#current;
  }

  vouchFor(queue: string, id: string): void {
    const ids = this.#sessions.get(queue);
    if (ids === undefined) this.#sessions.set(queue, new Set([id]));
    else ids.add(id);
  }

  forget(queue: string, id: string): void {
    const ids = this.#sessions.get(queue);
    ids?.delete(id);
    if (ids?.size === 0) this.#sessions.delete(queue);
  }

  /** Moves the sessions of this process from its former connection to this one. */
  async moveTo(presence: string | undefined): Promise<void> {
    this.#current = presence;
    const before = this.#before;
    if (presence === undefined || presence === before) return;
    this.#before = presence;
    if (before === undefined) return;
    for (const [queue, ids] of this.#sessions) {
      const all = [...ids];
      for (let first = 0; first < all.length; first += TOLD_AT_ONCE) {
        // If this call fails, the next renewal of each session reports the same.
        await this.#run('present', queue, [before, presence, ...all.slice(first, first + TOLD_AT_ONCE)]).catch(() => undefined);
      }
    }
  }
}
