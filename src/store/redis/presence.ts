// The crash hint. Each session names a connection that vouches for it: that of whoever opened it or renewed it last. Redis drops
// the connection when its process dies, however it dies, and whoever asks for it then knows that the owner is gone. A living
// process that lost its connection says so as soon as it has another.
import type { Runner } from './runner.js';

const TOLD_AT_ONCE = 200;

export class Presence {
  readonly #run: Runner;
  readonly #sessions = new Map<string, Set<string>>();
  #current: string | undefined;
  /** What our sessions may still name. */
  #before: string | undefined;

  constructor(run: Runner) {
    this.#run = run;
  }

  /** The name of the connection that vouches for sessions now, if there is one. */
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

  /** Sessions that name the connection before this one name it from now on. */
  async moveTo(presence: string | undefined): Promise<void> {
    this.#current = presence;
    const before = this.#before;
    if (presence === undefined || presence === before) return;
    this.#before = presence;
    if (before === undefined) return;
    for (const [queue, ids] of this.#sessions) {
      const all = [...ids];
      for (let first = 0; first < all.length; first += TOLD_AT_ONCE) {
        // When it fails, the next renewal says the same.
        await this.#run('present', queue, [before, presence, ...all.slice(first, first + TOLD_AT_ONCE)]).catch(() => undefined);
      }
    }
  }
}
