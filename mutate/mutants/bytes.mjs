// Replies and the event log are bounded by bytes.
import { conformance } from './tests.mjs';

const only = 'large|events';

export const BYTES = [
  {
    name: 'a reply holds everything',
    file: 'src/store/budget.ts',
    find: 'let left = REPLY_BYTES;',
    replace: 'let left = REPLY_BYTES * 1000;',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'memory: a claim is not bounded by bytes',
    file: 'src/store/memory/claim.ts',
    find: '    if (bytes > REPLY_BYTES && jobs.length > 0) {',
    replace: '    if (bytes > 1000 * REPLY_BYTES && jobs.length > 0) {',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'memory: the event log is bounded by number alone',
    file: 'src/store/memory/events.ts',
    find: 'while (this.#bytes > EVENTS_BYTES_KEPT &&',
    replace: 'while (this.#bytes > 1000 * EVENTS_BYTES_KEPT &&',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'memory: a claim by ids is not bounded by bytes',
    file: 'src/store/memory/claim.ts',
    find: 'if (bytes > REPLY_BYTES && jobs.length > 0) claimed.more = true;',
    replace: 'if (bytes > 1000 * REPLY_BYTES && jobs.length > 0) claimed.more = true;',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'a value is measured in characters',
    file: 'src/store/budget.ts',
    find: 'Buffer.byteLength(json) > EVENT_VALUE_BYTES);',
    replace: 'json.length > EVENT_VALUE_BYTES);',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'sqlite: events are not bounded by bytes',
    file: 'src/store/sqlite/events.ts',
    find: 'let left = REPLY_BYTES;',
    replace: 'let left = REPLY_BYTES * 1000;',
    tests: conformance('sqlite'),
    only: 'large',
  },
  {
    name: 'sqlite: a list is not bounded by bytes',
    file: 'src/store/sqlite/inspect.ts',
    find: 'const budget = { left: REPLY_BYTES, isEmpty',
    replace: 'const budget = { left: REPLY_BYTES * 1000, isEmpty',
    tests: conformance('sqlite'),
    only: 'large',
  },
  {
    name: 'postgres: a list is not bounded by bytes',
    file: 'src/store/postgres/inspect.ts',
    find: 'asc,\n      budget: REPLY_BYTES,',
    replace: 'asc,\n      budget: REPLY_BYTES * 1000,',
    tests: conformance('postgres'),
    only: 'large',
  },
  {
    name: 'redis: the fast claim is not bounded by bytes',
    file: 'src/store/redis/lua/settle.lua',
    find: '(grouped and most or claims) * largest > REPLY_BYTES then',
    replace: '(grouped and most or claims) * largest > REPLY_BYTES * 1000 then',
    tests: conformance('redis'),
    only: 'large',
  },
];
