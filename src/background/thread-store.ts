// One store in the lock thread: its own connection, the sessions renewed over it, and their sweepers.
// If the store cannot be opened, the thread retries every second; until then the worker renews on its own event loop.
import { toError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import type { Notice, SessionEnd, SessionRef, Store, SweepReply } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import { openDescribed } from '../store/open.js';
import { Sweeper } from '../maintenance/sweeper.js';
import type { DetachedLocks, RunLimit, SessionPlan } from '../session/renewer.js';
import type { Attempt } from './messages.js';
import { AheadWatch } from './ahead-watch.js';
import { RunLimits } from './run-limits.js';
import { detachLocks, returnJobs } from '../renewal/detach-locks.js';
import { RenewalLoop } from '../renewal/renewal-loop.js';
import type { SessionMemory } from '../session/session-memory.js';
import { clearTimeout, setImmediate, setTimeout } from '../runtime/timers.js';

export interface ThreadSessionReports {
  mayRenew(): boolean;
  renewed(): void;
  noticed(notices: Notice[]): void;
  lost(): void;
  swept(reply: Omit<SweepReply, 'more'>): void;
  undone(): void;
  failed(error: unknown, what: Attempt): void;
}

interface Held {
  memory: SessionMemory;
  plan: SessionPlan;
  reports: ThreadSessionReports;
  sweeper?: Sweeper;
  /** The last reported reason why the store could not be opened. */
  unreachable?: string;
}

const REOPEN_MS = 1000;

export class ThreadStore {
  readonly #descriptor: StoreDescriptor;
  readonly #held = new Map<string, Held>();
  readonly #limits = new RunLimits();
  readonly #ahead = new AheadWatch(systemClock);
  #store: Store | undefined;
  #loop: RenewalLoop | undefined;
  #opening: Promise<void> | undefined;
  #reopen: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(descriptor: StoreDescriptor) {
    this.#descriptor = descriptor;
  }

  get size(): number {
    return this.#held.size;
  }

  sessionIds(): string[] {
    return [...this.#held.keys()];
  }

  keep(memory: SessionMemory, plan: SessionPlan, reports: ThreadSessionReports): void {
    const held: Held = { memory, plan, reports };
    this.#held.set(plan.id, held);
    if (this.#store !== undefined) this.#begin([held], this.#store);
    else this.#opening ??= this.#open();
  }

  grow(sessionId: string, block: SharedArrayBuffer): void {
    this.#held.get(sessionId)?.memory.addBlock(block);
  }

  /** Called twice a second. */
  beat(): void {
    this.#loop?.look();
  }

  limit(sessionId: string, limit: RunLimit): void {
    const held = this.#held.get(sessionId);
    if (held === undefined) return;
    const { plan, memory, reports } = held;
    this.#limits.add(limit, {
      queue: plan.queue,
      memory,
      store: () => this.#store,
      onOver: (notice) => reports.noticed([notice]),
      onError: (error) => reports.failed(error, 'renewing'),
    });
  }

  unlimit(token: string): void {
    this.#limits.delete(token);
  }

  /** While the event loop is blocked, the jobs that it has claimed ahead go to other workers. */
  watchAhead(sessionId: string): void {
    const held = this.#held.get(sessionId);
    if (held === undefined) return;
    const { plan, memory, reports } = held;
    this.#ahead.add(sessionId, memory, (fences) => {
      if (this.#store === undefined) return;
      returnJobs(this.#store, plan, fences).catch((error: unknown) => reports.failed(error, 'renewing'));
    });
  }

  detach(sessionId: string, locks: DetachedLocks): void {
    const held = this.#held.get(sessionId);
    if (held === undefined || this.#store === undefined) return;
    const { plan, reports, sweeper } = held;
    detachLocks(this.#store, plan, locks).then(
      () => sweeper?.sweep(),
      (error: unknown) => reports.failed(error, 'renewing'),
    );
  }

  release(sessionId: string): SessionRef | undefined {
    const held = this.#held.get(sessionId);
    this.#held.delete(sessionId);
    held?.sweeper?.stop();
    this.#ahead.delete(sessionId);
    this.#loop?.delete(sessionId);
    return held === undefined ? undefined : { queue: held.plan.queue, id: sessionId };
  }

  async handBack(retired: SessionRef[], how: SessionEnd): Promise<void> {
    const refs = [...retired, ...[...this.#held.values()].map(({ plan: { queue, id } }) => ({ queue, id }))];
    if (refs.length > 0) await this.#store?.closeSessions(refs, how);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reopen);
    this.#limits.stop();
    this.#ahead.stop();
    this.#loop?.stop();
    await this.#opening;
    await this.#store?.close();
  }

  async #open(): Promise<void> {
    // The messages that came while the thread started are read first. If they release the session again, nothing is opened.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#closed) return;
    try {
      const store = await openDescribed(this.#descriptor);
      this.#store = store;
      this.#loop = new RenewalLoop(store, systemClock, true);
      this.#begin([...this.#held.values()], store);
    } catch (error) {
      this.#reportUnreachable(toError(error));
      this.#opening = undefined;
      if (this.#closed) return;
      this.#reopen = setTimeout(() => {
        this.#opening ??= this.#open();
      }, REOPEN_MS).unref();
    }
  }

  /** Reports each reason once, because opening is retried every second. */
  #reportUnreachable(error: Error): void {
    for (const held of this.#held.values()) {
      if (held.unreachable !== error.message) held.reports.failed(error, 'opening');
      held.unreachable = error.message;
    }
  }

  /** Renews all sessions before the first sweep: the process may have been frozen while the store was opened. */
  #begin(all: Held[], store: Store): void {
    for (const held of all) this.#renew(held);
    for (const held of all) this.#sweep(held, store);
  }

  #sweep(held: Held, store: Store): void {
    const { plan, reports } = held;
    const { queue, sweepMs: intervalMs } = plan;
    if (intervalMs === 0) return;
    const onError = (error: Error) => reports.failed(error, 'sweeping');
    const beforeSweep = async (): Promise<void> => this.#loop?.catchUp();
    const onSwept = reports.swept.bind(reports);
    const onUndone = reports.undone.bind(reports);
    held.sweeper = new Sweeper({ store, queue, intervalMs, beforeSweep, onSwept, onUndone, onError });
    held.sweeper.start();
  }

  #renew({ plan, memory, reports }: Held): void {
    if (plan.renewMs === 0) {
      // Nothing to renew: an open store is the only proof that the thread works.
      reports.renewed();
      return;
    }
    this.#loop?.add(
      {
        plan,
        memory,
        mayRenew: () => reports.mayRenew(),
        onRenewed: () => reports.renewed(),
        onNoticed: (notices) => reports.noticed(notices),
        onLost: () => {
          this.release(plan.id);
          reports.lost();
        },
        onError: (error) => reports.failed(error, 'renewing'),
      },
      0,
    );
  }
}
