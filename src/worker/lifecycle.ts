// The state machine of a worker: idle → starting → running → closing → closed, with `paused` beside starting and running. It checks each
// step and remembers it; startup.ts and shutdown.ts carry the steps out. A worker without a processor is `by hand` until it closes. The
// lifecycle never calls the store, so `health()` can ask it for the state at any time. A start that the store refuses leads back to idle.
import { closedError, HoldfastError } from '../errors.js';
import { MAX_TIMER_MS } from '../runtime/check.js';
import { clearInterval, clearTimeout, performance, setInterval, setTimeout } from '../runtime/timers.js';

/** by hand: the worker has no processor; getNextJob takes its jobs. starting: run() was called, and jobs are not claimed yet. */
type Phase = 'by hand' | 'idle' | 'starting' | 'running' | 'closing' | 'closed';

/** paused: run() was called, and pause() after or before it. */
export type WorkerState = Phase | 'paused';

export class Lifecycle {
  readonly #name: string;
  readonly #byHand: boolean;
  #phase: Phase;
  /** Stays set in every phase: a worker that is paused before run() starts paused. */
  #paused = false;
  #closing: Promise<void> | undefined;
  #start: Start | undefined;
  #refusal: Error | undefined;
  /** Keeps the process alive while the worker is open, also while it is paused or only waits for a handler. */
  #keepAlive: NodeJS.Timeout | undefined;
  readonly #force = latch();
  readonly #due = latch();
  #dueTimer: NodeJS.Timeout | undefined;
  /** When the running jobs are interrupted, on the clock of `performance`. */
  #dueAt = Number.POSITIVE_INFINITY;
  readonly #renewer = latch();

  constructor(name: string, byHand: boolean) {
    this.#name = name;
    this.#byHand = byHand;
    this.#phase = byHand ? 'by hand' : 'idle';
  }

  get state(): WorkerState {
    return this.#paused && this.isRunning ? 'paused' : this.#phase;
  }

  /** True from run() to close(), also while the worker is paused. */
  get isRunning(): boolean {
    return this.#phase === 'starting' || this.#phase === 'running';
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** The reason why the last start ended without a claim. */
  get refusal(): Error | undefined {
    return this.#refusal;
  }

  /** Resolves when the worker may claim, or is closed; at once if it does not run. Rejects if the store refuses the start. */
  async untilAttached(): Promise<void> {
    if (this.#refusal !== undefined) throw this.#refusal;
    await this.#start?.attached.passed;
  }

  /** Resolves when the worker is forced to close. */
  get forced(): Promise<void> {
    return this.#force.passed;
  }

  /** Resolves when a closing worker has waited for its running jobs for `timeoutMs`. */
  get due(): Promise<void> {
    return this.#due.passed;
  }

  /** Resolves when it is known where locks are renewed: the thread has renewed once, or the event loop will. */
  get renewerKnown(): Promise<void> {
    return this.#renewer.passed;
  }

  foundRenewer(): void {
    this.#renewer.open();
  }

  /** Throws CLOSED after close(). */
  checkOpen(): void {
    if (this.isClosing) throw closedError(`The worker of ${this.#name}`);
  }

  /** idle → starting. The promise resolves when the worker is closed, and rejects if the start is refused. */
  run(): Promise<void> {
    if (this.#byHand) {
      const message = `The worker of ${this.#name} has no processor to run; pass one, or use getNextJob().`;
      throw new HoldfastError('NO_PROCESSOR', message);
    }
    this.checkOpen();
    if (this.isRunning) throw new HoldfastError('ALREADY_RUNNING', `The worker of ${this.#name} is running already.`);
    this.#phase = 'starting';
    this.#refusal = undefined;
    this.#keepAlive = setInterval(() => undefined, MAX_TIMER_MS);
    this.#start = { attached: latch(), ended: latch() };
    return this.#start.ended.passed;
  }

  /** The store has accepted the settings of the worker. */
  attached(): void {
    this.#start?.attached.open();
  }

  /** starting → idle. A worker that was closed meanwhile stays closed. */
  refused(reason: Error): void {
    if (this.#phase !== 'starting') return;
    this.#phase = 'idle';
    this.#refusal = reason;
    clearInterval(this.#keepAlive);
    this.#start?.attached.fail(reason);
    this.#start?.ended.fail(reason);
    this.#start = undefined;
  }

  /** starting → running. A worker that was closed meanwhile stays closed. */
  started(): void {
    if (this.#phase === 'starting') this.#phase = 'running';
  }

  /** Returns false if the worker is paused already. */
  pause(): boolean {
    if (this.#paused) return false;
    this.#paused = true;
    return true;
  }

  /** Returns false if the worker is not paused. */
  resume(): boolean {
    if (!this.#paused) return false;
    this.#paused = false;
    return true;
  }

  /** Any → closing. Calls `shutDown` once, however often the worker is closed; a later call may still force it. */
  close(force: boolean, shutDown: () => Promise<void>): Promise<void> {
    if (this.#closing === undefined) {
      this.#phase = 'closing';
      // The close starts in a later microtask: listeners of `closing` must find it set, or one that closes again would never end.
      this.#closing = Promise.resolve().then(shutDown);
    }
    if (force) this.#force.open();
    return this.#closing;
  }

  /** Sets how long a closing worker waits for its running jobs. If it is set again, the earlier end counts. */
  interruptIn(ms: number): void {
    const at = performance.now() + ms;
    if (this.#phase === 'closed' || at >= this.#dueAt) return;
    this.#dueAt = at;
    clearTimeout(this.#dueTimer);
    this.#dueTimer = setTimeout(() => this.#due.open(), ms);
  }

  /** closing → closed. */
  closed(): void {
    this.#phase = 'closed';
    clearTimeout(this.#dueTimer);
    clearInterval(this.#keepAlive);
    this.#start?.attached.open();
    this.#start?.ended.open();
  }
}

interface Start {
  readonly attached: Latch;
  readonly ended: Latch;
}

interface Latch {
  readonly passed: Promise<void>;
  open(): void;
  fail(reason: Error): void;
}

function latch(): Latch {
  let open = (): void => undefined;
  let fail = (_reason: Error): void => undefined;
  const passed = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  // A caller may come later, or never.
  passed.catch(() => undefined);
  return { passed, open, fail };
}
