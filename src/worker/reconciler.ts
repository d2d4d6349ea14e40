// Finds strays: locks that the store holds for this worker and that the worker does not know. A reply was lost, or the store went back in
// time (a replica that took over, a restored backup) and lists this worker as owner of jobs that it has finished. No other worker could
// ever claim them, so the reconciler releases them. The store loop calls it.
import { toError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import type { CallReply } from '../store/client/session-calls.js';
import type { WorkerContext } from './context.js';
import type { ClaimRef, Outbox } from './outbox.js';

export type AnsweredCall = Pick<CallReply, 'session' | 'seq'>;

/** Number of lock durations between two checks although every reply came. */
const RECONCILED_AFTER = 4;

export class Reconciler {
  readonly #context: WorkerContext;
  readonly #outbox: Outbox;
  readonly #everyMs: number;
  #dueAt: number;

  constructor(context: WorkerContext, outbox: Outbox) {
    this.#context = context;
    this.#outbox = outbox;
    this.#everyMs = RECONCILED_AFTER * context.opts.lockDuration;
    this.#dueAt = systemClock.monotonic() + this.#everyMs;
  }

  isDue(time: number): boolean {
    return time >= this.#dueAt;
  }

  async reconcile(call: AnsweredCall): Promise<void> {
    const { calls, emitter } = this.#context;
    this.#dueAt = systemClock.monotonic() + this.#everyMs;
    try {
      // The jobs may have run here, if the store went back in time. So release them, which keeps the counted start.
      this.#outbox.release(await calls.withTimeout(this.#strays(call), false));
    } catch (error) {
      emitter.emit('error', toError(error));
    }
  }

  /** Returns unknown locks of calls up to this one that got a reply. Jobs of later calls may not have arrived yet. */
  async #strays({ session, seq }: AnsweredCall): Promise<ClaimRef[]> {
    const { calls, queue, table } = this.#context;
    const store = await this.#context.ready();
    const unanswered = calls.unanswered(session);
    const owned = await store.locks(queue, { session: session.id });
    // Jobs that go back already are no strays: a release would count a start that never was.
    const known = new Set([...table.locks().map(({ token }) => token), ...this.#outbox.tokens()]);
    const strays = owned.filter((lock) => lock.seq <= seq && !unanswered.has(lock.seq) && !known.has(lock.token));
    return strays.map(({ jobId, token }) => ({ id: jobId, token }));
  }
}
