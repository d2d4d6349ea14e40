// The lock thread of a simulated process: the product's own entry file in a realm and a loop of its own, which go on while the process' main
// loop is blocked. Stands in for the Worker of node:worker_threads on one side and for parentPort on the other.
import { EventEmitter } from 'node:events';

const MESSAGE_MS = 0.05;

/** Answers the class that a process gets as `Worker`. */
export function threadClass(process) {
  return class extends EventEmitter {
    #loop;
    /** What is sent before waits in the port. */
    #startsAt;
    #port = new EventEmitter();

    constructor(_file, { workerData }) {
      super();
      const { world, random } = process;
      this.#loop = process.makeLoop('locks');
      this.#port.postMessage = (message) => this.#send(process.loop, this, message);
      const threads = { parentPort: this.#port, workerData };
      this.#startsAt = world.now + random.between(5, 60);
      this.#loop.arrive(this.#startsAt, () => {
        process.makeRealm(this.#loop, threads).load('background/thread-entry.js');
      });
      process.thread = { loop: this.#loop, die: (error) => this.#die(error) };
    }

    postMessage(message) {
      this.#send(this.#loop, this.#port, message);
    }

    ref() {}

    unref() {}

    async terminate() {
      this.#loop.die();
    }

    #send(loop, receiver, message) {
      const copy = structuredClone(message);
      loop.arrive(Math.max(process.world.now, this.#startsAt) + MESSAGE_MS, () => receiver.emit('message', copy));
    }

    #die(error) {
      this.#loop.die();
      process.loop.arrive(process.world.now + MESSAGE_MS, () => this.emit('error', error));
    }
  };
}
