// Tells other processes that queues have changed. Not inside the transactions that change them: a transaction that notifies holds a lock
// of the whole server until it is on disk, so that all of them would wait for one another's fsync. A notification of its own writes
// nothing to disk. It goes out at once after the first change and then for many changes together. One that is lost is made good by the
// poll of those who wait for it.
// But a lone job should not wait for a second call. So an add after a moment in which nothing was told tells of itself, if no other
// transaction of the kind is under way in the database (plain-add.ts): then nobody waits for anybody's fsync. A job that another process
// waits for starts 0.5 to 1 ms earlier, of 3.5 to 4.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long after one notification the next may go out: after changes that somebody may wait for (longer and longer while they come one upon
 * the other), and after those that only tell.
 */
const FIRST_MS = 1;
const WORK_MS = 10;
const NEWS_MS = 50;
/** How long a worker of this process has for taking a job before others hear of it. Telling them at once made it start 0.2 ms later. */
const OURS_MS = 5;
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
  #changes = 0;
  /** Nothing goes out before. */
  #restsUntil = 0;
  #hurry: AbortController | undefined;
  #closed = false;

  constructor(send: (changes: Change[]) => Promise<unknown>) {
    this.#send = send;
  }

  /** `isOurs`: somebody in this process is about to take what it brings, and gets a moment to do so. */
  changed(queue: string, brings: Brings, isOurs = false): void {
    if (this.#closed) return;
    this.#pending.set(queue, together(this.#pending.get(queue) ?? brings, brings));
    if (brings !== 'news') {
      this.#changes += 1;
      if (!this.#urgent) {
        this.#urgent = true;
        if (isOurs) this.#rest(OURS_MS);
        this.#hurry?.abort();
      }
    }
    this.#sending ??= this.#run();
  }

  /** How many changes there were that somebody may wait for. */
  get changes(): number {
    return this.#changes;
  }

  /** A claim that was sent after so many changes left no job waiting: that there were some is only news by now. */
  taken(queue: string, changes: number): void {
    if (changes !== this.#changes || this.#pending.get(queue) !== 'jobs') return;
    this.#pending.set(queue, 'news');
    this.#urgent = [...this.#pending.values()].some((brings) => brings !== 'news');
  }

  /** Whether an add that leaves now may tell of itself. */
  get isQuiet(): boolean {
    return !this.#closed && !this.#urgent && performance.now() >= this.#restsUntil;
  }

  /** It has: what follows at once is gathered. */
  told(): void {
    if (this.#closed) return;
    this.#rest(FIRST_MS);
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
    do {
      // News wait longer after an add that has told of itself, or that was taken at once.
      const restMs = this.#restsUntil - performance.now();
      await this.#pause(restMs);
      if (this.#urgent || (restMs <= 0 && this.#pending.size > 0)) {
        // What this process itself makes of the change goes first, on the connection that is warm: a worker is woken in one turn of the loop and
        // claims in the next.
        for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        const changes = Array.from(this.#pending, ([queue, brings]) => ({ queue, brings }));
        this.#pending.clear();
        this.#urgent = false;
        await this.#send(changes).catch(() => undefined);
        this.#rest(pauseMs);
        await this.#pause(pauseMs);
      }
      if (this.#urgent) {
        pauseMs = Math.min(WORK_MS, 2 * pauseMs);
      } else {
        pauseMs = FIRST_MS;
        await this.#pause(NEWS_MS - WORK_MS);
      }
    } while (this.#pending.size > 0);
    this.#sending = undefined;
  }

  #rest(ms: number): void {
    this.#restsUntil = performance.now() + ms;
  }

  async #pause(ms: number): Promise<void> {
    if (this.#closed || ms <= 0) return;
    this.#hurry = ms > WORK_MS ? new AbortController() : undefined;
    await sleep(ms, undefined, { ref: false, ...(this.#hurry && { signal: this.#hurry.signal }) }).catch(() => undefined);
  }
}

function together(one: Brings, other: Brings): Brings {
  if (one === other || other === 'news') return one;
  return one === 'news' ? other : 'both';
}
