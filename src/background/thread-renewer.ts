// Renews in a thread, one per process for all workers. The event loop is the fallback until the thread has renewed a session for the
// first time, and whenever the thread does not run. So a session is never without a renewer.
import type { Clock } from '../runtime/clock.js';
import { HoldfastError } from '../errors.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { DetachedLocks, Renewer, RenewerListener, RenewedSession, RunLimit } from '../session/renewer.js';
import { LoopRenewer } from './loop-renewer.js';
import type { FromThread, PlainError } from './messages.js';
import { LockThread } from './lock-thread.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import { within } from '../runtime/within.js';

interface Entry {
  kept: RenewedSession & { descriptor: StoreDescriptor };
  byThread: boolean;
  /** The time limits of its runs, for a thread that starts later. */
  limits: Map<string, RunLimit>;
}

const MIN_RESTART_MS = 500;
const MAX_RESTART_MS = 30_000;
/** The longest wait, in ms, for the reply of a thread that no session needs any more. */
const MAX_RELEASE_MS = 1000;

export class ThreadRenewer implements Renewer {
  readonly #clock: Clock;
  readonly #entryFile: string | undefined;
  readonly #standIn: LoopRenewer;
  readonly #entries = new Map<string, Entry>();
  /** Released sessions for which messages that the thread sent before may still arrive. */
  readonly #leaving = new Map<string, Entry>();
  /** Callers that wait for 'released', oldest first. A worker that is closed by force releases its session twice. */
  readonly #releases = new Map<string, (() => void)[]>();
  /** Sessions of workers that were closed by force. The thread stays for them, to hand them back when the process exits. */
  readonly #retired = new Set<string>();
  #thread: LockThread | undefined;
  #restart: NodeJS.Timeout | undefined;
  /** How often the thread has ended without a renewal since its last one. */
  #failures = 0;

  constructor(clock: Clock, entryFile: string | undefined) {
    this.#clock = clock;
    this.#entryFile = entryFile;
    this.#standIn = new LoopRenewer(clock);
  }

  keep(kept: RenewedSession): void {
    const { descriptor } = kept;
    if (descriptor === undefined) {
      this.#standIn.keep(kept);
      return;
    }
    const entry: Entry = { kept: { ...kept, descriptor }, byThread: false, limits: new Map() };
    this.#entries.set(kept.plan.id, entry);
    this.#standInFor(entry);
    if (this.#thread !== undefined) this.#hand(entry, this.#thread);
    else if (this.#restart === undefined) this.#start();
  }

  grow(sessionId: string, block: SharedArrayBuffer): void {
    if (this.#entries.has(sessionId)) this.#thread?.send({ type: 'grow', sessionId, block });
  }

  limit(sessionId: string, limit: RunLimit): void {
    this.#entries.get(sessionId)?.limits.set(limit.outcome.token, limit);
    this.#thread?.send({ type: 'limit', sessionId, limit });
  }

  unlimit(sessionId: string, token: string): void {
    this.#entries.get(sessionId)?.limits.delete(token);
    this.#thread?.send({ type: 'unlimit', sessionId, token });
  }

  watchAhead(sessionId: string): void {
    if (this.#entries.has(sessionId)) this.#thread?.send({ type: 'watchAhead', sessionId });
  }

  detach(sessionId: string, locks: DetachedLocks): void {
    if (!this.#entries.has(sessionId)) return;
    this.#standIn.detach(sessionId, locks);
    this.#thread?.send({ type: 'detach', sessionId, locks });
  }

  async release(sessionId: string, handBackAtExit: boolean): Promise<void> {
    const entry = this.#entries.get(sessionId);
    this.#entries.delete(sessionId);
    if (handBackAtExit) this.#retired.add(sessionId);
    else this.#retired.delete(sessionId);
    await this.#standIn.release(sessionId);
    const thread = this.#thread;
    if (thread !== undefined) {
      if (entry !== undefined) this.#leaving.set(sessionId, entry);
      const released = new Promise<void>((resolve) => {
        this.#releases.set(sessionId, [...(this.#releases.get(sessionId) ?? []), resolve]);
      });
      thread.send({ type: 'release', sessionId, handBackAtExit });
      await thread.awaited(this.#stoppedInTime(released, entry?.kept.plan.durationMs));
    }
    // The last release stops the thread: until then other callers may still wait for its reply.
    if (this.#entries.size + this.#retired.size + this.#releases.size > 0) return;
    clearTimeout(this.#restart);
    this.#restart = undefined;
    if (this.#thread === thread) this.#thread = undefined;
    // After the end of the thread, no file or connection of the store is open there.
    await thread?.stop();
  }

  /**
   * Waits for the thread's reply to a release. A thread that is still starting, or still opening its store, replies late. If no session
   * needs it any more, it is stopped instead, before the caller gives up: otherwise it would open the store after the close.
   */
  async #stoppedInTime(released: Promise<void>, durationMs = 2 * MAX_RELEASE_MS): Promise<void> {
    // Half of the duration: callers wait for the whole of it, and the session must still be closed.
    const answered = await within(
      Math.min(MAX_RELEASE_MS, durationMs / 2),
      released.then(() => true),
    );
    if (answered) return;
    if (this.#entries.size + this.#retired.size > 0) await released;
    else this.#endReleases();
  }

  #endReleases(): void {
    for (const resolve of [...this.#releases.values()].flat()) resolve();
    this.#releases.clear();
    this.#leaving.clear();
  }

  #start(): void {
    this.#restart = undefined;
    const thread = new LockThread(this.#entryFile, this.#clock, {
      onMessage: (message) => this.#receive(message),
      onEnd: (error, wasReady) => this.#ended(thread, error, wasReady),
    });
    this.#thread = thread;
    for (const entry of this.#entries.values()) this.#hand(entry, thread);
    thread.start();
  }

  #hand({ kept: { plan, memory, descriptor }, limits }: Entry, thread: LockThread): void {
    thread.send({ type: 'keep', plan, buffers: memory.buffers, descriptor });
    if (memory.isWatched) thread.send({ type: 'watchAhead', sessionId: plan.id });
    for (const limit of limits.values()) thread.send({ type: 'limit', sessionId: plan.id, limit });
  }

  #ended(thread: LockThread, cause: Error, wasReady: boolean): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    this.#endReleases();
    this.#retired.clear();
    if (this.#entries.size === 0) return;
    this.#failures += 1;
    const delay = retryPauseMs(this.#failures, MAX_RESTART_MS, MIN_RESTART_MS);
    this.#restart = setTimeout(() => this.#start(), delay).unref();
    const what = wasReady ? 'The dedicated lock thread died' : 'Failed to initialize dedicated lock thread';
    const message = `${what}: ${cause.message}. Locks are renewed on the event loop until it runs again; next try in ${delay} ms.`;
    for (const entry of [...this.#entries.values()]) {
      entry.byThread = false;
      // Renews at once, because the time of the thread's last renewal is not known here.
      this.#standInFor(entry, 0);
      entry.kept.listener.threaded(false);
      entry.kept.listener.failed(new HoldfastError('THREAD_FAILED', message, { cause, retryable: true }), false);
    }
  }

  #receive(message: FromThread): void {
    if (message.type === 'released') {
      const [resolve, ...others] = this.#releases.get(message.sessionId) ?? [];
      if (others.length > 0) this.#releases.set(message.sessionId, others);
      else this.#releases.delete(message.sessionId);
      this.#leaving.delete(message.sessionId);
      resolve?.();
      return;
    }
    // A block of the event loop is reported even if the thread has already reported that the session is lost.
    const entry =
      this.#entries.get(message.sessionId) ?? (message.type === 'blocked' ? this.#leaving.get(message.sessionId) : undefined);
    if (entry === undefined) return;
    const { listener, plan } = entry.kept;
    switch (message.type) {
      case 'renewed':
        this.#adopt(entry);
        if (plan.renewMs > 0) listener.renewed();
        break;
      case 'noticed':
        listener.noticed(message.notices);
        break;
      case 'lost':
        this.#entries.delete(message.sessionId);
        void this.#standIn.release(message.sessionId);
        listener.lost();
        break;
      case 'swept':
        listener.swept(message.reply);
        break;
      case 'undone':
        listener.undone();
        break;
      case 'blocked':
        listener.blocked(message.blockedMs, message.ceiling, message.seen);
        break;
      case 'failed':
        if (message.what === 'opening') this.#reportUnreachable(entry, message.error);
        else listener.failed(errorOf(message.error), message.what === 'renewing');
        break;
    }
  }

  /** The thread runs but cannot open the store. It retries, and the event loop stays the fallback. */
  #reportUnreachable({ kept: { listener } }: Entry, { message: text, retryable }: PlainError): void {
    const message = `Failed to initialize dedicated lock thread: ${text.replace(/\.$/, '')}. Locks are renewed on the event loop until it reaches the store.`;
    listener.threaded(false);
    listener.failed(new HoldfastError('THREAD_FAILED', message, { retryable }), false);
  }

  /** Gives the session to the thread: its first renewal proves that the thread works. */
  #adopt(entry: Entry): void {
    if (entry.byThread) return;
    entry.byThread = true;
    this.#failures = 0;
    this.#thread?.markReady();
    this.#standIn.handOver(entry.kept.plan.id);
    entry.kept.listener.threaded(true);
  }

  #standInFor({ kept }: Entry, firstInMs?: number): void {
    const { listener, plan } = kept;
    // The reply to a sweep of the fallback may arrive after the thread took over, and after the worker released its session.
    const swept: RenewerListener['swept'] = (reply) => {
      if (this.#entries.has(plan.id)) listener.swept(reply);
    };
    this.#standIn.keep({ ...kept, listener: { ...listener, swept } }, firstInMs);
  }
}

function errorOf({ code, message, retryable }: PlainError): HoldfastError {
  return new HoldfastError(code, message, { retryable });
}
