import { conformance } from './tests.mjs';

const only = 'events|settling|sweeping';

export const EVENTS = [
  {
    name: 'memory: a listener that was away reads what is gone',
    file: 'src/store/memory/events.ts',
    find: 'const first = Math.max(after, this.#trimmed) + 1;',
    replace: 'const first = after + 1;',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'memory: drained is told while jobs are active',
    file: 'src/store/memory/settle.ts',
    find: 'queue.finishes > finishesBefore && queue.active.size === 0 &&',
    replace: 'queue.finishes > finishesBefore &&',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'sqlite: drained is told while jobs are active',
    file: 'src/store/sqlite/settle.ts',
    find: 'anyFinished && queue.active === 0 &&',
    replace: 'anyFinished &&',
    tests: conformance('sqlite'),
    only,
  },
  {
    name: 'sqlite: an event is read twice',
    file: 'src/store/sqlite/events.ts',
    find: 'Math.max(0, last + 1 - first)',
    replace: 'Math.max(0, last - first)',
    tests: conformance('sqlite'),
    only,
  },
  {
    name: 'postgres: an event is read twice',
    file: 'src/store/postgres/events.ts',
    find: 'if (id > reply.from &&',
    replace: 'if (id >= reply.from &&',
    tests: conformance('postgres'),
    only,
  },
  {
    name: 'redis: the fast settle tells nothing of what it claims',
    file: 'src/store/redis/lua/settle.lua',
    find: "told[3 * size + 2 * i] = 'X', id",
    replace: "told[3 * size + 2 * i] = 'B', id",
    tests: conformance('redis'),
    only: `${only}|claiming`,
  },
  {
    name: 'redis: the fast settle tells drained while jobs are active',
    file: 'src/store/redis/lua/settle.lua',
    find: 'if size > 0 and active == 0 and not waiting then',
    replace: 'if size > 0 and not waiting then',
    tests: conformance('redis'),
    only,
  },
  {
    name: 'postgres: a stall is not told',
    file: 'src/store/postgres/sql/leave.sql',
    find: "_change.body := event('stalled', _sum.ids,",
    replace: "_change.body := event('waiting', _sum.ids,",
    tests: conformance('postgres'),
    only,
  },
];
