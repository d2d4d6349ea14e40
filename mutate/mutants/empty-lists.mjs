// An empty list does no I/O.
const tests = ['test/acceptance/s4-empty-lists.test.ts'];

export const EMPTY_LISTS = [
  {
    name: 'sqlite: a transaction for nothing',
    file: 'src/store/sqlite/connection.ts',
    find: 'if (items.length === 0) return Promise.resolve([]);',
    replace: 'if (items.length < 0) return Promise.resolve([]);',
    tests,
  },
  {
    name: 'postgres: a statement for nothing',
    file: 'src/store/postgres/connection.ts',
    find: 'return wishes.length === 0 ? [] : acquire(server, queue, wishes);',
    replace: 'return acquire(server, queue, wishes);',
    tests,
  },
  {
    name: 'redis: a command for nothing',
    file: 'src/store/redis/connection.ts',
    find: 'if (items.length > 0) return this.#call(work);',
    replace: 'if (items.length >= 0) return this.#call(work);',
    tests,
  },
];
