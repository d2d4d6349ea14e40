// The rules of a FaultyStore: which calls go wrong, and how.
import type { HoldfastError } from '../errors.js';

export type Fault =
  /** Rejects without asking the store. */
  | 'fail'
  /** The store does the work, the caller gets an error: a connection that died before the reply. */
  | 'drop-reply'
  /** The store does the work, the caller hears nothing until `release`, then gets the reply: a half-open connection. */
  | 'hold-reply'
  /** The store is not asked until `release`: a connection that hangs. */
  | 'hang'
  /** The store is asked `delayMs` later. */
  | 'delay';

export interface FaultOptions<Args extends unknown[] = unknown[]> {
  fault: Fault;
  /** How many calls it strikes; without it, every one until the rule is removed. */
  times?: number;
  /** How many calls it lets pass first. */
  after?: number;
  /** Strikes only calls with these arguments. */
  when?: (...args: Args) => boolean;
  /** For `delay`. */
  delayMs?: number;
  /** What the caller gets from `fail` and `drop-reply`; without it, a retryable STORE_UNAVAILABLE. */
  error?: HoldfastError;
}

/** A rule in force: what `on` answers. */
export class FaultRule {
  /** How many calls it has struck. */
  struck = 0;
  readonly options: Readonly<FaultOptions>;
  #passed = 0;
  #held: (() => void)[] = [];
  readonly #remove: (rule: FaultRule) => void;

  constructor(options: FaultOptions, remove: (rule: FaultRule) => void) {
    this.options = options;
    this.#remove = remove;
  }

  /** How many calls it holds at the moment. */
  get holding(): number {
    return this.#held.length;
  }

  /** True when this call is to go wrong; counts it. */
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

  /** Lets go of the calls that it holds; later ones are held again. */
  release(): void {
    const held = this.#held;
    this.#held = [];
    for (const go of held) go();
  }

  /** Takes the rule back and lets go of what it holds. */
  remove(): void {
    this.#remove(this);
    this.release();
  }
}
