import { conformance, engines, unit } from './tests.mjs';

const only = 'claiming|taking|fencing|replays|locks|races|random|fence|layout|settle';

export const FENCES = [
  {
    name: 'a fence is given twice',
    file: 'src/job/lock.ts',
    find: 'Math.max(last + 1, Math.floor(storeNowMs * 1000))',
    replace: 'Math.max(last, Math.floor(storeNowMs * 1000))',
    tests: conformance('memory', 'sqlite'),
    only,
  },
  {
    name: 'fences count from where the store is, not from its clock',
    file: 'src/job/lock.ts',
    find: 'Math.max(last + 1, Math.floor(storeNowMs * 1000))',
    replace: 'Math.max(last + 1, Math.floor(storeNowMs * 0))',
    tests: unit('job-fence'),
  },
  {
    name: 'postgres: another server goes on with the sequence as it finds it',
    file: 'src/store/postgres/sql/locks.sql',
    find: "IF nextval('fences') < _clock THEN",
    replace: "IF nextval('fences') < 0 THEN",
    tests: engines('postgres/layout', 'postgres/fast-paths', 'postgres/outage', 'postgres/migrate'),
  },
  {
    name: 'redis: the fast claim gives every job the same fence',
    file: 'src/store/redis/lua/settle.lua',
    find: 'format(DIGITS, first + i), texts[size + i]',
    replace: 'format(DIGITS, first + 1), texts[size + i]',
    tests: conformance('redis'),
    only,
  },
  {
    name: 'redis: the fast claim goes back with the clock',
    file: 'src/store/redis/lua/settle.lua',
    find: 'tick < micros and micros or tick + 1',
    replace: 'micros',
    tests: [...conformance('redis'), ...engines('redis/plain-settle', 'redis/layout')],
    only,
  },
];
