// The entry file of the lock thread, started once per process by LockThread. Imported anywhere else, it does nothing.
import { parentPort, workerData } from 'node:worker_threads';
import type { ThreadData } from './messages.js';
import { ThreadService } from './thread-service.js';

const data = workerData as Partial<ThreadData> | null;
if (parentPort !== null && data?.beat instanceof SharedArrayBuffer && data.handedBack instanceof SharedArrayBuffer) {
  void new ThreadService(parentPort, data as ThreadData);
}
