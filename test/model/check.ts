// Model conformance: the same random sequence of verbs on a store and on the memory store, whose every line is plain enough to be read
// against the contract. Each reply and, in the end, everything that can be seen must be the same on both. Both tell the time by one clock
// under the test's hand, so that times are compared to the millisecond.
//   HOLDFAST_MODEL_RUNS=10000 npx vitest run test/model -t sqlite              more sequences
//   HOLDFAST_MODEL_SEED=7 …                                                    other sequences
//   HOLDFAST_MODEL_SEED=… HOLDFAST_MODEL_PATH=…                                the one that failed
import { inspect, isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import type { ManualClock } from '../../src/testing/index.js';
import { Cast } from './cast.js';
import { KNOWN } from './known.js';
import { Side } from './side.js';
import { STEP_MS, type Step, sequence } from './steps.js';
import { visible } from './visible.js';

/** A store that tells the time by a clock under the test's hand. */
export interface Contender {
  clock: ManualClock;
  /** More than one where the store is shared: steps go through any of them. */
  connections: Store[];
  /**
   * "those that wait for their key last": it is found out when a claim looks at them, so lists with such jobs are compared without their
   * order. Who is claimed next is compared in any case.
   */
  lazyKeys?: boolean;
  /** Shows the store what the clock shows now. Stores that read the clock themselves have none. */
  showTime?(queue: string, now: number): Promise<void>;
}

export interface CheckOptions {
  runs: number;
  /** Steps of a sequence, at most. */
  steps?: number;
  /** Shrinking stops here, with the shortest sequence so far. */
  limitMs?: number;
  /** False: the first sequence that fails will do. */
  shrink?: boolean;
}

const SEED = 20_301;
/** Characters of a reply that are still read. */
const LONG = 2_000;

// Without anybody to hold anything, most steps do nothing.
const PRELUDE: Step[] = [
  { verb: 'open', via: 0, session: 's1', durationMs: 3_600_005, maxStalls: 1, slots: 2 },
  { verb: 'open', via: 0, session: 's2', durationMs: 2_005, maxStalls: 0, slots: 3 },
];

class Difference extends Error {}

/** Undefined when both agree in all sequences; otherwise all that is needed to understand and to repeat the shortest one found. */
export async function findDifference(contender: () => Promise<Contender>, options: CheckOptions): Promise<string | undefined> {
  const { runs, steps = 60, limitMs = 45_000, shrink = true } = options;
  const seed = Number(process.env['HOLDFAST_MODEL_SEED'] ?? SEED);
  const path = process.env['HOLDFAST_MODEL_PATH'];
  const numRuns = Number(process.env['HOLDFAST_MODEL_RUNS'] ?? runs);
  let number = 0;
  const property = fc.asyncProperty(sequence(steps), async (chosen) => {
    await compare(await contender(), `model-${process.pid}-${(number += 1)}`, [...PRELUDE, ...chosen]);
  });
  const limit = process.env['HOLDFAST_MODEL_RUNS'] === undefined ? { interruptAfterTimeLimit: limitMs } : {};
  const examples = KNOWN.map((known): [Step[]] => [known]);
  const found = await fc.check(property, {
    seed,
    numRuns,
    examples,
    endOnFailure: !shrink,
    ...limit,
    ...(path !== undefined && { path }),
  });
  if (!found.failed) return undefined;
  const [failing = []] = found.counterexample ?? [];
  const lines = [...PRELUDE, ...failing].map((one, index) => `  ${index + 1}. ${show(one)}`);
  return [
    `HOLDFAST_MODEL_SEED=${found.seed} HOLDFAST_MODEL_PATH=${found.counterexamplePath} (run ${found.numRuns}, shrunk ${found.numShrinks} times)`,
    ...lines,
    found.errorInstance instanceof Difference ? found.errorInstance.message : inspect(found.errorInstance),
  ].join('\n');
}

/** Rejects with that difference: an assertion would cut it short. */
export async function agreeWithMemory(contender: () => Promise<Contender>, options: CheckOptions): Promise<void> {
  const difference = await findDifference(contender, options);
  if (difference !== undefined) throw new Error(difference);
}

async function compare(contender: Contender, queue: string, sequence: Step[]): Promise<void> {
  const { clock, connections, showTime } = contender;
  const memory = new MemoryStore({ clock });
  const cast = new Cast(queue, contender.lazyKeys);
  const [model, store] = [new Side([memory]), new Side(connections)];
  const both = async (where: string, act: Parameters<Side['run']>[0], via = 0): Promise<void> => {
    const expected = await model.run(act, via);
    const { last } = await memory.events(queue, undefined, 1);
    cast.marks.push(last);
    agree(where, expected, await store.run(act, via));
    // Now: a store may number events when they are read, and then judges by the time of that moment whether a queue was drained.
    const told = await (connections[0] as Store).events(queue, undefined, 1);
    agree(`${where}: how many events were told`, last, told.last);
  };
  for (const [index, one] of sequence.entries()) {
    clock.advance(one.verb === 'pass' ? one.ms : STEP_MS);
    await showTime?.(queue, clock.wall());
    const act = cast.act(one);
    const where = `step ${index + 1}, ${one.verb}`;
    await both(where, act, one.via);
    if ('again' in one && one.again) await both(`${where}, repeated`, act, 1 - one.via);
  }
  await both('what can be seen in the end', (one, side) => visible(one, side, cast), 0);
  await memory.close();
}

function agree(where: string, model: unknown, store: unknown): void {
  const places = differences(model, store, '');
  if (places.length === 0) return;
  const replies = [model, store].map((reply) => inspect(reply, { depth: 8, breakLength: 130, compact: 20 }));
  const [inModel, inStore] = replies.map((text) => (text.length > LONG ? 'see above' : text));
  throw new Difference([where, ...places.slice(0, 12), `  memory: ${inModel}`, `  store:  ${inStore}`].join('\n'));
}

/** What each side says wherever they differ: what can be seen fills pages. */
function differences(model: unknown, store: unknown, path: string): string[] {
  if (isDeepStrictEqual(model, store)) return [];
  if (!isTree(model) || !isTree(store) || Array.isArray(model) !== Array.isArray(store)) {
    return [`  at ${path === '' ? 'the reply' : path}: memory has ${inspect(model)}, the store ${inspect(store)}`];
  }
  const keys = new Set([...Object.keys(model), ...Object.keys(store)]);
  return [...keys].flatMap((key) => differences(model[key], store[key], `${path}.${key}`));
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function show({ verb, via, ...rest }: Step): string {
  return `${verb}${via === 1 ? ' (by the other connection)' : ''} ${inspect(rest, { depth: 6, breakLength: Number.POSITIVE_INFINITY })}`;
}
