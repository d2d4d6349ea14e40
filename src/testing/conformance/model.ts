// Facet: hundreds of random verbs, compared with a model of a queue that fits on a page. After each verb the store's reply must
// equal the model's, and each running schedule has one next job or is owing. Every few verbs everything visible is compared: each job
// is in exactly one state, counts equal lists, at most one lock per job, one active job per key, one owner per deduplication id, one
// holder per name, no more active jobs than the cap and the limits of groups allow, and fences only grow. In the end no job has starved.
// A second walk works on families: see the file `family-walk`.
import assert from 'node:assert/strict';
import { FamilyWalk } from './family-walk.js';
import { ModelQueue } from './model-queue.js';
import { Random } from './random.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const SEEDS = [1, 20_301, 777_777];
const STEPS = 300;
const CHECK_EVERY = 10;

/** Fewer steps, because the store is compared after each of them. */
const FAMILY_SEEDS = [5, 90_210];
const FAMILY_STEPS = 80;
const FAMILY_CHECK_EVERY = 20;

export function model(test: Test): void {
  for (const seed of SEEDS) {
    test(`${STEPS} random verbs keep every invariant (seed ${seed})`, (scene) => wander(scene, [scene], seed));
  }

  test.shared(`${STEPS} random verbs through two connections keep every invariant`, async (scene) =>
    wander(scene, [scene, await scene.peer()], 4_242),
  );

  for (const seed of FAMILY_SEEDS) {
    test.families(`${FAMILY_STEPS} random verbs keep the families of three queues whole (seed ${seed})`, (scene) =>
      wanderInFamilies(scene, seed),
    );
  }
}

async function wanderInFamilies(scene: Scene, seed: number): Promise<void> {
  const random = new Random(seed);
  const walk = new FamilyWalk(random, scene.queue);
  const steps = walk.steps();
  const trail: string[] = [];
  try {
    for (let step = 1; step <= FAMILY_STEPS; step += 1) {
      const [name, act] = random.pick(steps) ?? assert.fail('no steps');
      trail.push(name);
      await act(scene);
      await walk.relay(scene);
      await walk.compare(scene, step % FAMILY_CHECK_EVERY === 0);
    }
    trail.push('drain');
    await walk.drain(scene);
    await walk.compare(scene, true);
  } catch (error) {
    throw explained(error, seed, trail);
  }
}

async function wander(scene: Scene, sides: Scene[], seed: number): Promise<void> {
  const random = new Random(seed);
  const queue = new ModelQueue(random, {
    deduplication: scene.has('deduplication'),
    schedules: scene.has('schedules'),
    groups: scene.has('groups'),
    steps: scene.has('steps'),
    cancelling: scene.has('cancelling'),
  });
  const steps = queue.steps();
  const trail: string[] = [];
  try {
    for (let step = 1; step <= STEPS; step += 1) {
      const [name, act] = random.pick(steps) ?? assert.fail('no steps');
      trail.push(name);
      await act(random.pick(sides) ?? scene);
      await queue.check(scene);
      if (step % CHECK_EVERY === 0 || step === STEPS) await queue.compare(random.pick(sides) ?? scene);
    }
    trail.push('drain');
    await queue.drain(scene);
    await queue.compare(scene);
  } catch (error) {
    throw explained(error, seed, trail);
  }
}

function explained(error: unknown, seed: number, trail: string[]): Error {
  const { message } = error as Error;
  return new Error(`seed ${seed}, step ${trail.length}, after … ${trail.slice(-12).join(' → ')}: ${message}`, { cause: error });
}
