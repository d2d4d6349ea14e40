// Tells other processes that queues have changed. Not inside the transactions that change them: a transaction that notifies holds a lock
// of the whole server until it is on disk, so that all of them would wait for one another's fsync. A notification of its own writes
// nothing to disk. It goes out at once after the first change and then for many changes together. One that is lost is made good by the
// poll of those who wait for it.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long after one notification the next may go out: after changes that somebody may wait for (longer and longer while they come one upon
 * the other), and after those that only tell.
 */
const FIRST_MS = 1;
const WORK_MS = 10;
const NEWS_MS = 50;
/** Of the loop, before one goes out. */
const TURNS = 3;

/** What a change may bring: something to claim, now or sooner than was known; a named lock. News: neither. */
export type Brings = 'jobs' | 'locks' | 'both' | 'news';

export interface Change {
  queue: string;
  brings: Brings;
}

export class Notifier {
  readonly #send: (changes: Change[]) => Promise<unknown>;
  readonly #pending = new Map<string, Brings>();
  #sending: Promise<void> | undefined;
  #urgent = false;
  #hurry: AbortController | undefined;
  #closed = false;

  constructor(send: (changes: Change[]) => Promise<unknown>) {
    this.#send = send;
  }

  changed(queue: string, brings: Brings): void {
    if (this.#closed) return;
    this.#pending.set(queue, together(this.#pending.get(queue) ?? brings, brings));
    if (brings !== 'news' && !this.#urgent) {
      this.#urgent = true;
      this.#hurry?.abort();
    }
    this.#sending ??= this.#run();
  }

  /** What is pending goes out first. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#hurry?.abort();
    // A pause that is under way keeps no process alive; whoever waits for the end of it must.
    const alive = setInterval(() => undefined, NEWS_MS);
    await this.#sending;
    clearInterval(alive);
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_MS;
    while (this.#pending.size > 0) {
      // What this process itself makes of the change goes first, on the connection that is warm: a worker is woken in one turn of the loop and
      // claims in the next.
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      const changes = Array.from(this.#pending, ([queue, brings]) => ({ queue, brings }));
      this.#pending.clear();
      this.#urgent = false;
      await this.#send(changes).catch(() => undefined);
      await this.#pause(pauseMs);
      if (this.#urgent) {
        pauseMs = Math.min(WORK_MS, 2 * pauseMs);
      } else {
        pauseMs = FIRST_MS;
        await this.#pause(NEWS_MS - WORK_MS);
      }
    }
    this.#sending = undefined;
  }

  async #pause(ms: number): Promise<void> {
    if (this.#closed) return;
    this.#hurry = ms > WORK_MS ? new AbortController() : undefined;
    await sleep(ms, undefined, { ref: false, ...(this.#hurry && { signal: this.#hurry.signal }) }).catch(() => undefined);
  }
}

function together(one: Brings, other: Brings): Brings {
  if (one === other || other === 'news') return one;
  return one === 'news' ? other : 'both';
}
