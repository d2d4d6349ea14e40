// The renewers of this process. All workers share one thread.
import { systemClock } from '../runtime/clock.js';
import type { Renewers } from '../session/renewer.js';
import { LoopRenewer } from './loop-renewer.js';
import { ThreadRenewer } from './thread-renewer.js';

const loopRenewer = new LoopRenewer(systemClock);
/** Keyed by entry file; almost always one entry. */
const threadRenewers = new Map<string | undefined, ThreadRenewer>();

export const renewers: Renewers = {
  onLoop: () => loopRenewer,
  inThread(entryFile) {
    let renewer = threadRenewers.get(entryFile);
    if (renewer === undefined) {
      renewer = new ThreadRenewer(systemClock, entryFile);
      threadRenewers.set(entryFile, renewer);
    }
    return renewer;
  },
};
