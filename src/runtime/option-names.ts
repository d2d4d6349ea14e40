// Checks the names in an options object. If Holdfast does not support a name that BullMQ knows, or if a name looks like a misspelt
// option, it is refused. Names that mean nothing here pass. Any other name passes too, with one warning, because frameworks pass
// their own options through.
import { HoldfastError } from '../errors.js';
import { invalidOption } from './check.js';

export interface OptionNamesOptions<T> {
  /** Starts messages: 'worker' gives "the worker option …". */
  of: string;
  /** Every supported option. The compiler refuses a list that misses one. */
  known: { readonly [K in keyof T]-?: true };
  /** Options of other libraries that mean nothing here. Ignoring them changes nothing. */
  without?: readonly string[];
  /** Options of other libraries that have no effect here, and that carry no risk, each with what there is instead. They are warned of once. */
  ignored?: Readonly<Record<string, string>>;
  /** Unsupported options of other libraries, each with advice what to do instead. The value `false` is accepted, because it requests nothing. */
  unsupported?: Readonly<Record<string, string>>;
  /** Unknown names are refused: all, or those whose values are objects or lists, because these may hold jobs or their data. */
  refuses?: 'unknown' | 'unknown objects';
  /** The page of the docs about unsupported options. */
  guide?: string;
}

const WARNING_CODE = 'HOLDFAST_UNKNOWN_OPTION';
const GUIDE = 'docs/migrating-from-bullmq.md#what-is-not-there';
/** Limit for remembered names. Names may come from outside, so memory must be bounded. */
const MAX_REMEMBERED = 1000;

const warned = new Set<string>();

export class OptionNames<T = Record<string, unknown>> {
  readonly #of: string;
  readonly #known: ReadonlySet<string>;
  readonly #ignored: ReadonlyMap<string, string>;
  readonly #unsupported: ReadonlyMap<string, string>;
  readonly #refuses: OptionNamesOptions<T>['refuses'];
  readonly #guide: string;
  /** Unknown names that were checked and pass. */
  readonly #passed = new Set<string>();

  constructor({ of, known, without = [], ignored = {}, unsupported = {}, refuses, guide = GUIDE }: OptionNamesOptions<T>) {
    this.#of = of;
    this.#known = new Set([...Object.keys(known), ...without]);
    this.#refuses = refuses;
    this.#guide = guide;
    this.#ignored = new Map(Object.entries(ignored));
    this.#unsupported = new Map(Object.entries(unsupported));
  }

  /** Throws OPTION_UNSUPPORTED or INVALID_OPTION. `within` is the path of `given`, for nested options. */
  check(given: object, within = ''): void {
    for (const name of Object.keys(given)) {
      if (!this.#known.has(name)) this.judge(name, (given as Record<string, unknown>)[name], within);
    }
  }

  /** Checks that the options of a call are an object, and checks its names. Returns the object. */
  checked<G extends object>(given: G): G {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      throw invalidOption('options', given, `an object with ${[...this.#known].join(', ')}`);
    this.check(given);
    return given;
  }

  /** Checks one name that is not in `known`. An option with the value undefined counts as not set. */
  judge(name: string, value: unknown, within = ''): void {
    if (value === undefined || this.#known.has(name)) return;
    const isObject = typeof value === 'object' && value !== null;
    const isRefused = this.#refuses === 'unknown' || (this.#refuses === 'unknown objects' && isObject);
    if (this.#passed.has(name) && !isRefused) return;
    const option = within === '' ? name : `${within}.${name}`;
    const instead = this.#unsupported.get(name);
    if (instead !== undefined) {
      if (value !== false) throw this.#refused(option, instead);
      return;
    }
    const ignored = this.#ignored.get(name);
    if (ignored !== undefined) {
      this.#passed.add(name);
      if (value !== false) warnOnce(option, `The ${this.#of} option "${option}" has no effect. ${ignored}`);
      return;
    }
    const meant = closest(name, this.#known, 2) ?? closest(name, this.#unsupported.keys(), 1);
    if (meant !== undefined) {
      const message = `There is no ${this.#of} option ${option}: did you mean ${meant}? It is refused, because ignoring it would hide a typing mistake.`;
      throw new HoldfastError('INVALID_OPTION', message, { option });
    }
    if (isRefused) {
      const message = `There is no ${this.#of} option ${option}, only ${[...this.#known].join(', ')}. Nothing was done.`;
      throw new HoldfastError('INVALID_OPTION', message, { option });
    }
    if (this.#passed.size < MAX_REMEMBERED) this.#passed.add(name);
    const message = `Holdfast does not know the ${this.#of} option "${option}", so it has no effect. Remove it, unless a framework passes it.`;
    warnOnce(option, message);
  }

  #refused(option: string, instead: string): HoldfastError {
    const why = `The ${this.#of} option ${option} is not supported, and ignoring it would change what your program does.`;
    return new HoldfastError('OPTION_UNSUPPORTED', `${why} ${instead} See ${this.#guide}.`, { option });
  }
}

function warnOnce(option: string, message: string): void {
  if (warned.has(option) || warned.size >= MAX_REMEMBERED) return;
  warned.add(option);
  process.emitWarning(message, { type: 'HoldfastWarning', code: WARNING_CODE });
}

/** Returns the closest known name within `edits` insertions, deletions, changes or swaps; within one if it has four letters or fewer. */
export function closest(name: string, known: Iterable<string>, edits: number): string | undefined {
  let best: string | undefined;
  let fewest = edits + 1;
  for (const candidate of known) {
    const allowed = candidate.length <= 4 ? 1 : edits;
    if (Math.abs(candidate.length - name.length) > allowed) continue;
    const distance = distanceOf(name, candidate);
    if (distance > allowed || distance >= fewest) continue;
    best = candidate;
    fewest = distance;
  }
  return best;
}

/** Edit distance in which a swap of two neighbours is one edit. */
function distanceOf(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const changed = (last[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let least = Math.min(changed, (last[column] as number) + 1, (current[column - 1] as number) + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        least = Math.min(least, (beforeLast[column - 2] as number) + 1);
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] as number;
}
