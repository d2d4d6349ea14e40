// Gives up jobs whose runs have ended and whose outcomes the store has not accepted for as long as a lock lasts. The lock thread renews over
// a connection of its own, so it could keep such jobs active for ever. It must never give up a job whose handler may still run.
import { HoldfastError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import type { HeldLock } from '../session/held-lock.js';
import type { Session } from '../session/session.js';
import type { StuckCall } from '../store/client/session-calls.js';
import type { WorkerContext } from './context.js';
import type { Outbox } from './outbox.js';

export class Undelivered {
  readonly #context: WorkerContext;
  readonly #outbox: Outbox;
  /** When the tokens of the outcomes that wait for a call were first seen here. */
  #seen = new Map<string, number>();
  /** The session whose lock thread reached the store at the last look, although a call was stuck. */
  #renewed: Session | undefined;

  constructor(context: WorkerContext, outbox: Outbox) {
    this.#context = context;
    this.#outbox = outbox;
  }

  /**
   * Called again and again while the call is stuck. After an outage that the lock thread met too, the call gets its time to go through: the
   * locks are given up only if two calls in a row find the session renewed.
   */
  stuck({ session, seq, outcomes }: StuckCall): boolean {
    const wasRenewed = this.#renewed === session;
    this.#renewed = session.trustedForMs() > 0 ? session : undefined;
    const waiting = this.#waitingForLong();
    if (!wasRenewed || this.#renewed === undefined) return false;
    const { owner, table, emitter, name, opts } = this.#context;
    const tokens = [...outcomes.map(({ token }) => token), ...waiting];
    const locks = tokens.flatMap((token) => table.get(token) ?? []).filter((lock) => lock.session === session && !lock.timed);
    // Trust ends before the store lets another owner in.
    const news = locks.filter((lock) => lock.lose('its outcome could not be delivered'));
    // Repeated each time: the lock thread may have been started anew, or have failed.
    owner.detach(session, { held: locks.map(({ jobId, token }) => ({ jobId, token })), claims: [seq] });
    if (news.length > 0) emitter.emit('error', overdue(name, news, opts.lockDuration));
    return true;
  }

  /** Outcomes that no call has taken for as long as a lock lasts, because all calls are stuck. */
  #waitingForLong(): string[] {
    const time = systemClock.monotonic();
    const before = this.#seen;
    this.#seen = new Map(this.#outbox.tokens().map((token) => [token, before.get(token) ?? time]));
    return [...this.#seen].flatMap(([token, since]) => (time - since >= this.#context.opts.lockDuration ? [token] : []));
  }
}

function overdue(queue: string, locks: HeldLock[], ms: number): HoldfastError {
  const [first] = locks;
  const jobs = locks.length === 1 ? `job ${first?.jobId}` : `jobs ${locks.map(({ jobId }) => jobId).join(', ')}`;
  const message =
    `The store has not accepted the outcome of ${jobs} for ${ms} ms, although its lock is renewed. The lock is given up: another worker ` +
    'runs the job again, and a late outcome is refused. Check the connection of this process to the store.';
  return new HoldfastError('OUTCOME_OVERDUE', message, { queue });
}
