// The memory store for tests in which `add` runs the handler. `add` resolves when each job that it added has run once, with any
// outcome. Nothing else differs from the memory store. `add` never waits for a run that cannot come: if there is no worker, or the
// queue is paused or rate limited, it resolves at once.
import type { NewJob } from '../../job/record.js';
import { clearTimeout, setImmediate, setTimeout } from '../../runtime/timers.js';
import type { Capabilities } from '../capabilities.js';
import type { AddReply, Call } from '../contract/index.js';
import { MemoryStore, type MemoryStoreOptions } from './connection.js';
import { Memory } from './state/memory.js';
import type { QueueState } from './state/queue-state.js';

/**
 * How long `add` waits without any claim in the queue before it stops waiting for its waiting jobs. A worker claims within one turn
 * of the event loop. A paused worker, or a caller that awaits `add` before it claims by hand, holds a session but would never
 * claim.
 */
const CLAIM_TIMEOUT_MS = 200;

interface Waiter {
  state: QueueState;
  ids: string[];
  /** The fence of the last claim that this waiter saw. */
  fence: number;
  timer: NodeJS.Timeout;
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
    families: true,
  };
  readonly #memory: SyncMemory;

  constructor({ clock }: MemoryStoreOptions = {}) {
    const memory = new SyncMemory(clock);
    super({}, memory);
    this.#memory = memory;
  }

  override async add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]> {
    const replies = await super.add(queue, jobs, call, transaction);
    const ids = replies.filter(({ status }) => status === 'added').map(({ id }) => id);
    await this.#memory.haveRun(queue, ids);
    return replies;
  }
}

class SyncMemory extends Memory {
  readonly #waiters = new Set<Waiter>();

  /** Resolves when the jobs have run, or cannot run now. */
  async haveRun(queue: string, ids: string[]): Promise<void> {
    const state = this.state(queue);
    if (!this.#answerable(state, ids)) await new Promise<void>((answer) => this.#wait(state, ids, answer));
  }

  override close(): void {
    super.close();
    for (const waiter of this.#waiters) this.#answer(waiter);
  }

  protected override changed(state: QueueState): void {
    for (const waiter of this.#waiters) {
      if (waiter.state !== state) continue;
      if (this.#answerable(state, waiter.ids)) this.#answer(waiter);
      else if (waiter.fence !== state.lastFence) {
        waiter.fence = state.lastFence;
        waiter.timer.refresh();
      }
    }
  }

  #wait(state: QueueState, ids: string[], answer: () => void): void {
    const timer = setTimeout(() => this.#lookAgain(waiter), CLAIM_TIMEOUT_MS);
    const waiter: Waiter = { state, ids, fence: state.lastFence, timer, answer };
    this.#waiters.add(waiter);
  }

  /** After a blocked event loop the timer fires before the worker's turn. Let that turn pass before giving up on the jobs. */
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
    clearTimeout(waiter.timer);
    waiter.answer();
  }

  #answerable(state: QueueState, ids: string[]): boolean {
    const stuck = this.#stuck(state);
    return ids.every((id) => wasRun(state, id) || (stuck && state.jobs.get(id)?.state === 'waiting'));
  }

  /** True if no worker can claim a job now. */
  #stuck(state: QueueState): boolean {
    const now = this.now();
    const worker = [...state.sessions.values()].some((session) => session.open && session.expiresAt > now);
    return !worker || !state.wake.watched || state.paused || state.limits.visibleMs(now) > 0;
  }
}

/**
 * True if the job has run once and is no longer active, or cannot run now. A retry without delay may be active again before
 * `changed` sees it waiting.
 */
function wasRun(state: QueueState, id: string): boolean {
  const job = state.jobs.get(id);
  if (job === undefined) return true;
  if (job.state === 'active') return job.attemptsStarted > 1;
  return job.state !== 'waiting' || job.attemptsStarted > 0;
}
