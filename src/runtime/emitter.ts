// Node's EventEmitter with typed events (a map from event to its arguments) and two differences. An `error` without a listener is
// printed and does not end the process: a queue that cannot reach its store for a moment must not take the application down.
// A listener that throws is reported as an `error` and does not stop the code that emitted.
import { EventEmitter } from 'node:events';
import { toError } from '../errors.js';

export type EventArguments<E> = Record<keyof E, unknown[]>;

export type ListenersOf<E extends EventArguments<E>> = { [K in keyof E]: (...args: E[K]) => void };

/** `L`: more listener types that are accepted. Inside a generic function the compiler cannot resolve the types of `E`. */
export class Emitter<E extends EventArguments<E>, L = ListenersOf<E>> extends EventEmitter {
  constructor() {
    super();
    // No limit: many jobs may each wait for an event of one emitter.
    this.setMaxListeners(0);
  }

  override emit<K extends keyof E & string>(event: K, ...args: E[K]): boolean {
    // Most events of a job have no listener, and Node's own `emit` takes longer to find that out.
    if (this.listenerCount(event) === 0) {
      if (event === 'error') console.error(args[0]);
      return false;
    }
    try {
      return super.emit(event, ...args);
    } catch (thrown) {
      this.#report(event, toError(thrown));
      return true;
    }
  }

  override on<K extends keyof E & string>(event: K, listener: (...args: E[K]) => void): this;
  override on<K extends keyof L & string>(event: K, listener: L[K]): this;
  override on(event: string, listener: never): this {
    return super.on(event, listener);
  }

  override once<K extends keyof E & string>(event: K, listener: (...args: E[K]) => void): this;
  override once<K extends keyof L & string>(event: K, listener: L[K]): this;
  override once(event: string, listener: never): this {
    return super.once(event, listener);
  }

  override off<K extends keyof E & string>(event: K, listener: (...args: E[K]) => void): this;
  override off<K extends keyof L & string>(event: K, listener: L[K]): this;
  override off(event: string, listener: never): this {
    return super.off(event, listener);
  }

  override addListener<K extends keyof E & string>(event: K, listener: (...args: E[K]) => void): this;
  override addListener<K extends keyof L & string>(event: K, listener: L[K]): this;
  override addListener(event: string, listener: never): this {
    return this.on(event as keyof E & string, listener);
  }

  override removeListener<K extends keyof E & string>(event: K, listener: (...args: E[K]) => void): this;
  override removeListener<K extends keyof L & string>(event: K, listener: L[K]): this;
  override removeListener(event: string, listener: never): this {
    return super.removeListener(event, listener);
  }

  #report(event: string, error: Error): void {
    if (event !== 'error' && this.listenerCount('error') > 0) {
      try {
        super.emit('error', error);
        return;
      } catch {
        // An error listener threw; only the console is left.
      }
    }
    console.error(error);
  }
}

/** An emitter that is closed at the end of its use; by `await using`, at the end of the block. */
export abstract class ClosingEmitter<E extends EventArguments<E>, L = ListenersOf<E>> extends Emitter<E, L> {
  abstract close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
