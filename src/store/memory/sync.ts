// The memory store for tests in which `add` runs the handler: it answers when each job that it added was run once, whatever came
// of it. Nothing else differs. It never waits for what cannot come: without a worker, paused or rate limited, it answers at once.
import type { NewJob } from '../../job/record.js';
import type { Capabilities } from '../capabilities.js';
import type { AddReply, Call } from '../contract/index.js';
import { MemoryStore } from './connection.js';
import type { QueueState } from './state.js';
import { clearTimeout, setImmediate, setTimeout } from '../../runtime/timers.js';

/**
 * So long may nothing at all be claimed before `add` stops waiting for its jobs to be. A worker claims within a turn of the loop; one
 * that was paused, and somebody who claims by hand and awaits the `add` first, hold a session and never would.
 */
const PATIENCE_MS = 200;

interface Waiter {
  state: QueueState;
  ids: string[];
  /** The last claim that it saw. */
  fence: number;
  patience: NodeJS.Timeout;
  answer: () => void;
}

export class SyncStore extends MemoryStore {
  override readonly capabilities: Capabilities = {
    engine: 'sync',
    shared: false,
    durable: false,
    crashHints: false,
    inline: true,
    transactions: false,
  };
  readonly #waiters = new Set<Waiter>();

  override async add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]> {
    const state = this.state(queue);
    const replies = await super.add(queue, jobs, call, transaction);
    const ids = replies.filter(({ duplicate }) => !duplicate).map(({ id }) => id);
    if (!this.#answerable(state, ids)) await new Promise<void>((answer) => this.#wait(state, ids, answer));
    return replies;
  }

  override async close(): Promise<void> {
    await super.close();
    for (const waiter of this.#waiters) this.#answer(waiter);
  }

  protected override changed(state: QueueState): void {
    for (const waiter of this.#waiters) {
      if (waiter.state !== state) continue;
      if (this.#answerable(state, waiter.ids)) this.#answer(waiter);
      else if (waiter.fence !== state.lastFence) {
        waiter.fence = state.lastFence;
        waiter.patience.refresh();
      }
    }
  }

  #wait(state: QueueState, ids: string[], answer: () => void): void {
    const patience = setTimeout(() => this.#lookAgain(waiter), PATIENCE_MS);
    const waiter: Waiter = { state, ids, fence: state.lastFence, patience, answer };
    this.#waiters.add(waiter);
  }

  /** After a blocked loop the timer comes before the worker's turn: that has to pass before it is given up on. */
  #lookAgain(waiter: Waiter): void {
    const { fence, state } = waiter;
    setImmediate(() => {
      if (fence !== waiter.fence) return;
      waiter.ids = waiter.ids.filter((id) => state.jobs.get(id)?.state !== 'waiting');
      this.changed(state);
    });
  }

  #answer(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    clearTimeout(waiter.patience);
    waiter.answer();
  }

  #answerable(state: QueueState, ids: string[]): boolean {
    const stuck = this.#stuck(state);
    return ids.every((id) => wasRun(state, id) || (stuck && state.jobs.get(id)?.state === 'waiting'));
  }

  /** Nobody takes jobs now. */
  #stuck(state: QueueState): boolean {
    const now = this.now();
    const worker = [...state.sessions.values()].some((session) => session.open && session.expiresAt > now);
    return !worker || !state.wake.watched || state.paused || state.rate.visibleMs(now) > 0;
  }
}

/** Run once and let go, or out of reach. A retry without delay may be active again before anyone saw it wait. */
function wasRun(state: QueueState, id: string): boolean {
  const job = state.jobs.get(id);
  if (job === undefined) return true;
  if (job.state === 'active') return job.attemptsStarted > 1;
  return job.state !== 'waiting' || job.attemptsStarted > 0;
}
