// What the tests of `holdfast/bull` and `holdfast/bun-queue` work on: the queue 'work' of a scene, seen through one of those shapes, in this
// process or in one of its own.
import type { EventEmitter } from 'node:events';
import { Queue as BullQueue, type QueueOptions as BullOptions } from 'holdfast/bull';
import { Queue as BunQueue, type QueueOptions as BunOptions } from 'holdfast/bun-queue';
import { onTestFinished } from 'vitest';
import { WorkerProcess } from '../processes/worker-process.js';
import type { Engine, Scene } from './scene.js';
import { inThisRun } from '../run/matrix.js';

/** The stores on which these shapes are tested with several processes. */
export const COMPAT_ENGINES: Engine[] = inThisRun(['sqlite', 'redis', 'postgres']);

type Place = Pick<Scene, 'connection'>;

export function bullQueue({ connection }: Place, options: BullOptions = {}): BullQueue {
  const queue = new BullQueue('work', { connection, ...options });
  onTestFinished(() => queue.close());
  return queue;
}

export function bunQueue({ connection }: Place, options: BunOptions = {}): BunQueue {
  const queue = new BunQueue('work', { connection, ...options });
  onTestFinished(() => queue.close());
  return queue;
}

/** A process with a Bull queue: see fixtures/bull.mjs for what it does with jobs and messages. */
export function bullProcess(
  { url }: Scene,
  options: { settings?: BullOptions['settings']; concurrency?: number } = {},
): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection: url, options: options as object }, 'bull.mjs');
}

/** The same with a bun-queue: see fixtures/bun-queue.mjs. Without a concurrency it only produces and leads. */
export function bunProcess({ url }: Scene, options: BunOptions & { concurrency?: number } = {}): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection: url, options: options as object }, 'bun-queue.mjs');
}

/** The arguments of the next such event. */
export function nextEvent(queue: EventEmitter, event: string): Promise<unknown[]> {
  return new Promise((resolve) => queue.once(event, (...args: unknown[]) => resolve(args)));
}
