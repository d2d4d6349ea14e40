// The rules of a FaultyStore: which calls fail, and how.
import type { HoldfastError } from '../errors.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';

export type Fault =
  /** Rejects without calling the store. */
  | 'fail'
  /** The store does the work, but the caller gets an error, as after a connection that died before the reply. */
  | 'drop-reply'
  /** The store does the work, but the caller gets the reply only after `release`, as on a half-open connection. */
  | 'hold-reply'
  /** The store is not called until `release`, as on a connection that hangs. */
  | 'hang'
  /** The store is called `delayMs` later. */
  | 'delay';

export interface FaultOptions<Args extends unknown[] = unknown[]> {
  fault: Fault;
  /** How many calls the rule affects. Default: every call until the rule is removed. */
  times?: number;
  /** How many calls the rule lets pass first. Default 0. */
  after?: number;
  /** Affects only calls for which this returns true. Default: all calls. */
  when?: (...args: Args) => boolean;
  /** Delay in ms for the fault `delay`. Default 0. */
  delayMs?: number;
  /** The error of `fail` and `drop-reply`. Default: a retryable STORE_UNAVAILABLE. */
  error?: HoldfastError;
}

const FAULTS: readonly unknown[] = ['fail', 'drop-reply', 'hold-reply', 'hang', 'delay'] satisfies Fault[];

const NAMES = new OptionNames<FaultOptions>({
  of: 'fault',
  known: { fault: true, times: true, after: true, when: true, delayMs: true, error: true },
});

/** A rule that never strikes would let a test pass that tests nothing. */
export function checkFault(options: FaultOptions): void {
  const { fault, times, after, delayMs, when } = NAMES.checked(options);
  if (!FAULTS.includes(fault)) throw invalidOption('fault', fault, `one of ${FAULTS.join(', ')}`);
  if (times !== undefined) checkInteger('times', times);
  if (after !== undefined) checkInteger('after', after);
  if (delayMs !== undefined && !(delayMs >= 0 && delayMs <= MAX_TIMER_MS))
    throw invalidOption('delayMs', delayMs, `a number from 0 to ${MAX_TIMER_MS}`);
  if (when !== undefined && typeof when !== 'function') throw invalidOption('when', when, 'a function');
}

/** A rule in force, as `on` returns it. */
export class FaultRule {
  /** How many calls the rule has affected. */
  struck = 0;
  readonly options: Readonly<FaultOptions>;
  #passed = 0;
  #held: (() => void)[] = [];
  readonly #remove: (rule: FaultRule) => void;

  constructor(options: FaultOptions, remove: (rule: FaultRule) => void) {
    this.options = options;
    this.#remove = remove;
  }

  /** How many calls the rule holds now. */
  get holding(): number {
    return this.#held.length;
  }

  /** Returns whether the rule affects this call, and counts the call. */
  strikes(args: unknown[]): boolean {
    const { times, after = 0, when } = this.options;
    if (when !== undefined && !when(...args)) return false;
    if (this.#passed < after) {
      this.#passed += 1;
      return false;
    }
    if (times !== undefined && this.struck >= times) return false;
    this.struck += 1;
    return true;
  }

  hold(): Promise<void> {
    return new Promise((resolve) => this.#held.push(resolve));
  }

  /** Lets the held calls continue. Later calls are held again. */
  release(): void {
    const held = this.#held;
    this.#held = [];
    for (const go of held) go();
  }

  /** Removes the rule and lets its held calls continue. */
  remove(): void {
    this.#remove(this);
    this.release();
  }
}
