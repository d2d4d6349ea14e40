// Notifies other processes that queues have changed. Notifications are not part of the transactions that change queues: a transaction
// that notifies holds a lock of the whole server until it is on disk, so all such transactions would wait for one another's fsync. A
// notification of its own writes nothing to disk. It is sent at once after the first change, and then for many changes together. If one
// is lost, the poll of the waiting processes makes up for it.
// But a lone job should not wait for a second call. So an add after a quiet moment sends its own notification, if no other transaction of
// this kind is open in the database (add_plain): then no transaction waits for another one's fsync. A job that another process waits
// for starts 0.5 to 1 ms earlier, of 3.5 to 4 ms.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The pause after a notification: FIRST_MS to WORK_MS after changes that a worker may wait for (it doubles while they keep coming),
 * NEWS_MS after changes that are only news.
 */
const FIRST_MS = 1;
const WORK_MS = 10;
const NEWS_MS = 50;
/**
 * How long a worker of this process may take to claim a job before other processes are notified. Notifying them at once made the job
 * start 0.2 ms later.
 */
const OURS_MS = 5;
/** How many turns of the event loop pass before a notification is sent. */
const TURNS = 3;

/** Kinds of change. jobs: jobs to claim, now or sooner than known. locks: a named lock came free. both: jobs and locks. news: neither. */
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
  /** No notification is sent before this time (ms of performance.now). */
  #restsUntil = 0;
  #hurry: AbortController | undefined;
  #closed = false;

  constructor(send: (changes: Change[]) => Promise<unknown>) {
    this.#send = send;
  }

  /** `isOurs`: a worker of this process is about to claim the job, and gets a moment to do so. */
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

  /** How many changes there were that a worker may wait for. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * Downgrades a pending notification: a claim that was sent after `changes` changes left no job waiting, so the jobs are only news by
   * now.
   */
  taken(queue: string, changes: number): void {
    if (changes !== this.#changes || this.#pending.get(queue) !== 'jobs') return;
    this.#pending.set(queue, 'news');
    this.#urgent = [...this.#pending.values()].some((brings) => brings !== 'news');
  }

  /** True if an add that is sent now may send its own notification. */
  get isQuiet(): boolean {
    return !this.#closed && !this.#urgent && performance.now() >= this.#restsUntil;
  }

  /** Records that an add has sent its own notification: changes right after it are gathered. */
  sentByAdd(): void {
    if (this.#closed) return;
    this.#rest(FIRST_MS);
    this.#sending ??= this.#run();
  }

  /** Sends the pending notifications first. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#hurry?.abort();
    // The timer of a pause does not keep the process alive, so the wait for its end must.
    const alive = setInterval(() => undefined, NEWS_MS);
    await this.#sending;
    clearInterval(alive);
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_MS;
    do {
      // News waits longer after an add that sent its own notification, or whose job was claimed at once.
      const restMs = this.#restsUntil - performance.now();
      await this.#pause(restMs);
      if (this.#urgent || (restMs <= 0 && this.#pending.size > 0)) {
        // The process's own reaction to the change goes first, on the warm connection: a worker is woken in one turn of the loop and
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
