// The door of all stores: an empty list does no I/O, and close waits for the calls in flight.
const file = 'src/store/door.ts';
const tests = ['test/acceptance/s4-empty-lists.test.ts'];
const door = ['test/unit/store-door.test.ts'];

export const EMPTY_LISTS = [
  {
    name: 'a call for an empty list',
    file,
    find: 'return Array.isArray(query) && query.length === 0;',
    replace: 'return Array.isArray(query) && query.length < 0;',
    tests,
  },
  {
    name: 'a call for no sessions to close',
    file,
    find: 'if (!isEmpty(sessions)) await',
    replace: 'await',
    tests,
  },
  {
    name: 'close waits for no call',
    file,
    find: 'return this.#inFlight === 0 ?',
    replace: 'return this.#inFlight >= 0 ?',
    tests: door,
  },
  {
    name: 'close waits for the first call only',
    file,
    find: 'if (this.#inFlight === 0) this.#onIdle?.();',
    replace: 'this.#onIdle?.();',
    tests: door,
  },
  {
    name: 'a call that fails stays in flight',
    file,
    find: 'reply.then(this.#landed, this.#landed);',
    replace: 'reply.then(this.#landed, () => undefined);',
    tests: door,
  },
  {
    name: 'a store opens after it was closed',
    file,
    find: 'if (this.#closing === undefined) this.engine = engine;',
    replace: 'this.engine = engine;',
    tests: door,
  },
  {
    name: 'a failed open is final',
    file,
    find: 'if (this.#opening === opening) this.#opening = undefined;',
    replace: '',
    tests: door,
  },
];
