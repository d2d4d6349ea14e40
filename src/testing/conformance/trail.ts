// The last calls of a test, with their replies. A failure shows them, so that its message says what the store was asked.
import { inspect } from 'node:util';
import type { Store } from '../../store/contract/index.js';

/** How many calls a message shows. Most tests ask, and then assert at once. */
const SHOWN_CALLS = 4;
const SHOWN_CHARACTERS = 600;

interface Made {
  verb: string;
  args: unknown[];
  /** Absent while the reply is on its way. */
  end?: { how: 'returned' | 'failed with'; value: unknown };
}

export class Trail {
  readonly #calls: Made[] = [];

  /** Returns the same store. Its calls leave a trail here. */
  through(store: Store): Store {
    return new Proxy(store, {
      get: (_, name) => {
        const value = Reflect.get(store, name, store) as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => this.#call(String(name), args, () => value.apply(store, args) as unknown);
      },
    });
  }

  /** Adds the last calls to the message of a failed test. */
  explain(failure: unknown): void {
    if (!(failure instanceof Error) || this.#calls.length === 0) return;
    const message = `${failure.message}\n\nThe last calls of this test, the newest at the end:\n${this.#calls.map(shown).join('\n')}\n`;
    // Test runners print the stack, which has its own copy of the message.
    if (failure.stack !== undefined) failure.stack = failure.stack.replace(failure.message, () => message);
    failure.message = message;
  }

  #call(verb: string, args: unknown[], make: () => unknown): unknown {
    const call: Made = { verb, args };
    this.#calls.push(call);
    if (this.#calls.length > SHOWN_CALLS) this.#calls.shift();
    const reply = make();
    if (!(reply instanceof Promise)) return reply;
    reply.then(
      (value) => (call.end = { how: 'returned', value }),
      (value) => (call.end = { how: 'failed with', value }),
    );
    return reply;
  }
}

function shown({ verb, args, end }: Made): string {
  const call = `  ${verb}(${args.map(brief).join(', ')})`;
  return end === undefined ? call : `${call} ${end.how} ${end.value instanceof Error ? end.value.message : brief(end.value)}`;
}

function brief(value: unknown): string {
  const text = inspect(value, {
    depth: 4,
    breakLength: Number.POSITIVE_INFINITY,
    compact: true,
    maxArrayLength: 20,
    maxStringLength: 80,
  });
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text;
}
