// Families on a store: random verbs on the jobs of three queues, each compared with the model of the conformance suite. Seeds follow
// each other, so a failure is repeated with its seed.
//   HOLDFAST_MODEL_RUNS=1000 npx vitest run test/model -t families          more walks
//   HOLDFAST_MODEL_SEED=… HOLDFAST_MODEL_RUNS=1 …                           the one that failed
import type { Store } from '../../src/store/contract/index.js';
import { FamilyWalk } from '../../src/testing/conformance/family-walk.js';
import { levelsToRun } from '../../src/testing/conformance/levels.js';
import { Random } from '../../src/testing/conformance/random.js';
import { Scene } from '../../src/testing/conformance/scene.js';
import type { Contender } from './check.js';

export interface WalkOptions {
  runs: number;
  /** Steps of a walk. */
  steps?: number;
}

const SEED = 20_301;
const CHECK_EVERY = 20;
const UNIT_MS = 100;

/** Returns how to repeat the first walk that fails; undefined if none does. */
export async function findFamilyDifference(
  contender: () => Promise<Contender>,
  { runs, steps = 100 }: WalkOptions,
): Promise<string | undefined> {
  const first = Number(process.env['HOLDFAST_MODEL_SEED'] ?? SEED);
  const count = Number(process.env['HOLDFAST_MODEL_RUNS'] ?? runs);
  for (let seed = first; seed < first + count; seed += 1) {
    const trail: string[] = [];
    try {
      await walk(await contender(), seed, steps, trail);
    } catch (error) {
      const { message } = error as Error;
      const verbs = trail.slice(-12).join(' → ');
      return `HOLDFAST_MODEL_SEED=${seed} HOLDFAST_MODEL_RUNS=1: step ${trail.length}, after … ${verbs}: ${message}`;
    }
  }
  return undefined;
}

export async function keepFamilies(contender: () => Promise<Contender>, options: WalkOptions): Promise<void> {
  const difference = await findFamilyDifference(contender, options);
  if (difference !== undefined) throw new Error(difference);
}

async function walk({ clock, connections, showTime }: Contender, seed: number, steps: number, trail: string[]): Promise<void> {
  const random = new Random(seed);
  const queue = `families-${process.pid}-${seed}`;
  const family = new FamilyWalk(random, queue);
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (const name of family.queues) await showTime?.(name, clock.wall());
  };
  const own = new Scene({ store: connections[0] as Store, advance, close: async () => {} }, UNIT_MS, levelsToRun()).at(queue);
  const scenes = connections.map((store) => own.through(store));
  await advance(1);
  for (let step = 1; step <= steps; step += 1) {
    const [name, act] = random.pick(family.steps()) as [string, (scene: Scene) => Promise<void>];
    trail.push(name);
    await act(random.pick(scenes) ?? own);
    await family.relay(random.pick(scenes) ?? own);
    await family.compare(random.pick(scenes) ?? own, step % CHECK_EVERY === 0);
    if (step % CHECK_EVERY === 0) await advance(1);
  }
  trail.push('drain');
  await family.drain(own);
  await family.compare(own, true);
}
