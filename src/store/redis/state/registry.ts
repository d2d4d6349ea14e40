// The names of the queues of a store: one sorted set per prefix, in the order of their bytes. It lies in a slot of its own, so no script
// of a queue can write it. The store writes a name beside the first add to a queue on a connection, and beside every session that opens.
// After a crash between the two, a name may be missing; the next session or process of the queue writes it.
import type { Link } from '../driver/link.js';
import { tagOf } from '../driver/runner.js';

export class Registry {
  readonly #link: Link;
  readonly #key: string;
  /** Queues whose names were written on this connection. */
  #known = new Set<string>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(link: Link, prefix: string) {
    this.#link = link;
    // No queue has an empty name.
    this.#key = `${tagOf(prefix, '')}:queues`;
  }

  /** Writes the name of a queue unless this connection has done so. Does not wait for the server. */
  ensure(queue: string): void {
    if (!this.#known.has(queue)) this.write(queue);
  }

  /** Writes the name of a queue. If that fails, the next `ensure` tries again. */
  write(queue: string): void {
    const known = this.#known.add(queue);
    const writing = this.#link.command('ZADD', [this.#key, 0, queue]).catch(() => known.delete(queue));
    this.#writing = Promise.all([this.#writing, writing]);
  }

  /** Resolves when the server has replied to all writes. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** Forgets which names were written: another server may have taken over without them. */
  reset(): void {
    this.#known = new Set();
  }

  async list(limit: number, after?: string): Promise<string[]> {
    const start = after === undefined ? '-' : `(${after}`;
    return (await this.#link.command('ZRANGEBYLEX', [this.#key, start, '+', 'LIMIT', 0, limit])) as string[];
  }
}
