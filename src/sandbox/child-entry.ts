// The entry file of the threads and processes of a sandbox. Imported anywhere else, it does nothing.
import { Socket } from 'node:net';
import { isMainThread, type MessagePort, parentPort } from 'node:worker_threads';
import { Channel } from './channel.js';
import { ChildService } from './child-service.js';
import { CHILD_MARK, type ToChild } from './messages.js';

if (process.argv[2] === CHILD_MARK) {
  // The user's file sees the arguments that its own options name, and not ours.
  const [, channelAt] = process.argv.splice(2, isMainThread ? 2 : 1);
  if (isMainThread) {
    const leave = (): void => process.exit();
    // The end of the channel: the worker's process has ended, or has let go of this one.
    const channel = new Channel(new Socket({ fd: Number(channelAt), readable: true, writable: true }), {
      message: (message) => service.receive(message as ToChild),
      closed: leave,
      broken: leave,
    });
    const service = new ChildService((message) => channel.send(message));
  } else {
    parentPort?.once('message', (port: MessagePort) => {
      const service = new ChildService((message) => port.postMessage(message));
      port.on('message', (message: ToChild) => service.receive(message));
    });
  }
}
