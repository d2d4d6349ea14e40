// The entry file of the threads and processes of a sandbox. Imported anywhere else, it does nothing.
import { isMainThread, parentPort } from 'node:worker_threads';
import { ChildService } from './child-service.js';
import { CHILD_MARK, type ToChild } from './messages.js';

if (process.argv[2] === CHILD_MARK) {
  // The user's file sees the arguments that its own options name, and not ours.
  process.argv.splice(2, 1);
  if (isMainThread) {
    const service = new ChildService((message) => void process.send?.(message));
    process.on('message', (message) => service.receive(message as ToChild));
    // The worker's process has ended, or has let go of this one.
    process.on('disconnect', () => process.exit());
  } else if (parentPort !== null) {
    const port = parentPort;
    const service = new ChildService((message) => port.postMessage(message));
    port.on('message', (message: ToChild) => service.receive(message));
  }
}
