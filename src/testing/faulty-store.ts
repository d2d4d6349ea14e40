// A store that fails on command. It wraps any store. A test decides for each verb which calls fail, wait, hang or lose their reply.
// A test can also wait for the moment at which a verb was called or returned. A Queue or Worker accepts this store as `connection`.
// Without rules it is transparent: it passes the conformance suite of the store that it wraps.
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError } from '../errors.js';
import { invalidOption } from '../runtime/check.js';
import type { Capabilities } from '../store/capabilities.js';
import type { Store, WatchedChange } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import { checkFault, type FaultOptions, FaultRule } from './faults.js';
import { Moments } from './moments.js';

/** All verbs that call the store. */
export type StoreVerb = Exclude<keyof Store, 'capabilities' | 'driver' | 'client' | 'describe' | 'watch' | 'onWarning'>;
type Args<V extends StoreVerb> = Parameters<Store[V]>;
type Reply<V extends StoreVerb> = Awaited<ReturnType<Store[V]>>;

export interface CalledMoment<V extends StoreVerb> {
  args: Args<V>;
}

/** The reply of the wrapped store, whether or not its caller ever gets it. */
export interface AnsweredMoment<V extends StoreVerb> extends CalledMoment<V> {
  reply?: Reply<V>;
  error?: unknown;
}

export interface FaultyStoreOptions {
  /**
   * True: `describe` is passed on, so a lock thread opens the real store and bypasses this one. Default false: all calls go through
   * this store, renewals included.
   */
  reachableFromThreads?: boolean;
}

export class FaultyStore implements Store {
  /** While true, the store drops wake-ups, as a half-open connection does. */
  losesWakeUps = false;
  readonly #inner: Store;
  readonly #options: FaultyStoreOptions;
  readonly #rules = new Map<StoreVerb, FaultRule[]>();
  readonly #called = new Map<StoreVerb, Moments<unknown>>();
  readonly #answered = new Map<StoreVerb, Moments<unknown>>();

  constructor(inner: Store, options: FaultyStoreOptions = {}) {
    this.#inner = inner;
    this.#options = options;
  }

  /** Adds a rule: from now on, calls of `verb` fail like this. If several rules match a call, the newest one applies. */
  on<V extends StoreVerb>(verb: V, options: FaultOptions<Args<V>>): FaultRule {
    this.#check(verb);
    checkFault(options as unknown as FaultOptions);
    const rule = new FaultRule(options as unknown as FaultOptions, (gone) => {
      this.#rules.set(
        verb,
        this.#rulesOf(verb).filter((other) => other !== gone),
      );
    });
    this.#rules.set(verb, [rule, ...this.#rulesOf(verb)]);
    return rule;
  }

  /** Lets every held call continue. The rules stay. */
  release(verb?: StoreVerb): void {
    for (const [ruled, rules] of this.#rules) if (verb === undefined || verb === ruled) for (const rule of rules) rule.release();
  }

  /** Removes all rules and lets every held call continue. */
  clear(): void {
    for (const rules of [...this.#rules.values()]) for (const rule of rules) rule.remove();
    this.losesWakeUps = false;
  }

  /** Returns how often a verb was called. */
  calls(verb: StoreVerb): number {
    this.#check(verb);
    return this.#moments(this.#called, verb).count;
  }

  /** Resolves with the next call of a verb, or with the n-th since the beginning. */
  called<V extends StoreVerb>(verb: V, nth?: number): Promise<CalledMoment<V>> {
    this.#check(verb);
    return this.#moments(this.#called, verb).wait(nth) as Promise<CalledMoment<V>>;
  }

  /**
   * Resolves with the next reply of the wrapped store to a verb, or with the n-th. The work is done then, even if the reply is
   * dropped or held.
   */
  answered<V extends StoreVerb>(verb: V, nth?: number): Promise<AnsweredMoment<V>> {
    this.#check(verb);
    return this.#moments(this.#answered, verb).wait(nth) as Promise<AnsweredMoment<V>>;
  }

  get driver(): string | undefined {
    return this.#inner.driver;
  }

  get client(): object | undefined {
    return this.#inner.client;
  }

  get capabilities(): Capabilities {
    return this.#inner.capabilities;
  }

  describe(): StoreDescriptor | undefined {
    return this.#options.reachableFromThreads === true ? this.#inner.describe() : undefined;
  }

  onWarning(listener: (warning: Error) => void): () => void {
    return this.#inner.onWarning(listener);
  }

  watch(queue: string, listener: () => void, what?: WatchedChange): () => void {
    const woken = (): void => {
      if (!this.losesWakeUps) listener();
    };
    return this.#inner.watch(queue, woken, what);
  }

  readonly open = this.#verb('open');
  readonly close = this.#verb('close');
  readonly add = this.#verb('add');
  readonly claim = this.#verb('claim');
  readonly settle = this.#verb('settle');
  readonly openSession = this.#verb('openSession');
  readonly renew = this.#verb('renew');
  readonly closeSessions = this.#verb('closeSessions');
  readonly sweep = this.#verb('sweep');
  readonly probe = this.#verb('probe');
  readonly checkSessions = this.#verb('checkSessions');
  readonly extend = this.#verb('extend');
  readonly acquire = this.#verb('acquire');
  readonly letGo = this.#verb('letGo');
  readonly configure = this.#verb('configure');
  readonly write = this.#verb('write');
  readonly change = this.#verb('change');
  readonly schedule = this.#verb('schedule');
  readonly relay = this.#verb('relay');
  readonly children = this.#verb('children');
  readonly forget = this.#verb('forget');
  readonly queues = this.#verb('queues');
  readonly jobs = this.#verb('jobs');
  readonly status = this.#verb('status');
  readonly logs = this.#verb('logs');
  readonly events = this.#verb('events');
  readonly locks = this.#verb('locks');
  readonly sessions = this.#verb('sessions');

  #verb<V extends StoreVerb>(verb: V): Store[V] {
    return ((...args: Args<V>) => this.#through(verb, args)) as unknown as Store[V];
  }

  async #through<V extends StoreVerb>(verb: V, args: Args<V>): Promise<Reply<V>> {
    this.#moments(this.#called, verb).happen({ args });
    const rule = this.#rulesOf(verb).find((candidate) => candidate.strikes(args));
    if (rule === undefined) return this.#ask(verb, args);
    const { fault, delayMs = 0, error } = rule.options;
    if (fault === 'fail') throw error ?? unavailable(verb, 'nothing was done');
    if (fault === 'delay') await sleep(delayMs);
    if (fault === 'hang') await rule.hold();
    const reply = await this.#ask(verb, args);
    if (fault === 'drop-reply') throw error ?? unavailable(verb, 'the work was done, its reply was dropped');
    if (fault === 'hold-reply') await rule.hold();
    return reply;
  }

  async #ask<V extends StoreVerb>(verb: V, args: Args<V>): Promise<Reply<V>> {
    const answered = this.#moments(this.#answered, verb);
    try {
      const reply = await (this.#inner[verb] as unknown as (...given: Args<V>) => Promise<Reply<V>>).apply(this.#inner, args);
      answered.happen({ args, reply });
      return reply;
    } catch (error) {
      answered.happen({ args, error });
      throw error;
    }
  }

  /** A misspelt verb would count 0 calls, and a rule for it would never strike. */
  #check(verb: StoreVerb): void {
    // The verbs are the functions among the fields; all other methods belong to the class.
    if (Object.hasOwn(this, verb) && typeof this[verb] === 'function') return;
    throw invalidOption('verb', verb, 'a verb of the store, such as add, claim or settle');
  }

  #rulesOf(verb: StoreVerb): FaultRule[] {
    return this.#rules.get(verb) ?? [];
  }

  #moments(kind: Map<StoreVerb, Moments<unknown>>, verb: StoreVerb): Moments<unknown> {
    const known = kind.get(verb) ?? new Moments<unknown>();
    kind.set(verb, known);
    return known;
  }
}

function unavailable(verb: StoreVerb, what: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `A test made ${verb}() fail: ${what}.`, { retryable: true });
}
