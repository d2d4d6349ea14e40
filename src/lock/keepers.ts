// Which keeper a worker gets. There is one thread per process, however many workers: the keepers live here.
import { systemClock } from '../runtime/clock.js';
import type { Keeper } from './keeper.js';
import { LoopKeeper } from './loop-keeper.js';
import { ThreadKeeper } from './thread-keeper.js';

const loopKeeper = new LoopKeeper(systemClock);
/** By entry file; almost always one. */
const threadKeepers = new Map<string | undefined, ThreadKeeper>();

export function keeperOnLoop(): Keeper {
  return loopKeeper;
}

export function keeperInThread(entryFile: string | undefined): Keeper {
  let keeper = threadKeepers.get(entryFile);
  if (keeper === undefined) {
    keeper = new ThreadKeeper(systemClock, entryFile);
    threadKeepers.set(entryFile, keeper);
  }
  return keeper;
}
