import { conformance, engines } from './tests.mjs';

const only = 'rate|window|metrics|minute|counts';
const stores = (name) => [`test/stores/${name}.test.ts`];

const REDIS = [
  {
    name: 'redis: the max of a claim comes before the max of the queue',
    file: 'src/store/redis/lua/claim.lua',
    find: 'request.max, request.durationMs = settings.rateMax - 1,',
    replace: 'request.max, request.durationMs = request.max or settings.rateMax - 1,',
    tests: conformance('redis'),
    only,
  },
  {
    name: 'redis: a window forgets its earlier claims',
    file: 'src/store/redis/lua/claim.lua',
    find: "set('windowUsed', queue.windowUsed + claims)",
    replace: "set('windowUsed', claims)",
    tests: conformance('redis'),
    only,
  },
  {
    name: 'redis: the fast path of settle ignores the rate',
    file: 'src/store/redis/lua/settle.lua',
    find: 'if level > 3 and (rateMax > 0 or points > 0',
    replace: 'if level > 3 and (points > 0',
    tests: conformance('redis'),
    only,
  },
  {
    name: 'redis: the fast path of settle counts a job of the next minute in the minute before',
    file: 'src/store/redis/lua/settle.lua',
    find: 'completedMinute ~= floor(now / 60000)',
    replace: 'completedMinute == 0',
    tests: [...conformance('redis'), ...engines('redis/settings')],
    only,
  },
  {
    name: 'redis: a block of 0 leaves the window open',
    file: 'src/store/redis/lua/queues.lua',
    find: "if blockedMs == '0' then set('windowEnds', 0) end",
    replace: '',
    tests: conformance('redis'),
    only,
  },
  {
    name: 'redis: the count of a minute goes on in the next one',
    file: 'src/store/redis/lua/metrics.lua',
    find: "settings[state .. 'Minute'], settings[state .. 'Current'] = minute, 0",
    replace: "settings[state .. 'Minute'] = minute",
    tests: conformance('redis'),
    only,
  },
];

const SQLITE = [
  {
    name: 'sqlite: a window forgets its earlier claims',
    file: 'src/store/sqlite/state/rate-limit.ts',
    find: 'window.windowUsed += claims;',
    replace: 'window.windowUsed = claims;',
    tests: conformance('sqlite'),
    only,
  },
  {
    name: 'sqlite: an ended window still counts',
    file: 'src/store/sqlite/state/rate-limit.ts',
    find: 'limit.max - (window.windowEnds > now ? window.windowUsed : 0)',
    replace: 'limit.max - window.windowUsed',
    tests: conformance('sqlite'),
    only,
  },
  {
    name: 'sqlite: a clock that was set back opens an older minute',
    file: 'src/store/sqlite/state/minute-counts.ts',
    find: 'const minute = Math.max(newest, Math.floor(now / MINUTE_MS));',
    replace: 'const minute = Math.floor(now / MINUTE_MS);',
    tests: conformance('sqlite'),
    equivalent: 'The clock of a file never goes back, also when its host has started again.',
  },
  {
    name: 'sqlite: points beyond the asked number stay',
    file: 'src/store/sqlite/state/minute-counts.ts',
    find: 'if (minute > newest) this.#trim(queue, kind, minute);',
    replace: '',
    tests: conformance('sqlite'),
    only,
  },
];

const POSTGRES = [
  {
    name: 'postgres: a window forgets its earlier claims',
    file: 'src/store/postgres/sql/claim.sql',
    find: 'window_used = CASE WHEN window_ends > _now THEN window_used ELSE 0 END + _taken',
    replace: 'window_used = _taken',
    tests: conformance('postgres'),
    only,
  },
  {
    name: 'postgres: the duration of the queue comes before the duration of a claim',
    file: 'src/store/postgres/sql/claim.sql',
    find: 'coalesce(_window, rate_ms)',
    replace: 'coalesce(rate_ms, _window)',
    tests: conformance('postgres'),
    only,
  },
  {
    name: 'postgres: the max of a claim comes before the max of the queue',
    file: 'src/store/postgres/sql/claim.sql',
    find: 'coalesce(coalesce(_row.rate_max, _max) - _row.window_used, _count)',
    replace: 'coalesce(coalesce(_max, _row.rate_max) - _row.window_used, _count)',
    tests: conformance('postgres'),
    only,
  },
  {
    name: 'postgres: a block of 0 leaves the window open',
    file: 'src/store/postgres/sql/queues.sql',
    find: 'window_ends = CASE WHEN _blocked <= 0 THEN 0 ELSE window_ends END',
    replace: 'window_ends = window_ends',
    tests: conformance('postgres'),
    only,
  },
  {
    name: 'postgres: metrics leave out jobs whose changes are pending',
    file: 'src/store/postgres/sql/metrics.sql',
    find: 'journal.number >= q.journal_from',
    replace: 'journal.number < 0',
    tests: conformance('postgres'),
    only,
  },
];

const USERS = [
  {
    name: 'the duration of the queue comes before the duration of a claim',
    file: 'src/job/rate.ts',
    find: 'ofClaim?.durationMs ?? ofQueue.durationMs',
    replace: 'ofQueue.durationMs',
    tests: conformance('memory'),
    only,
  },
  {
    name: 'getRateLimitTtl calls a full window free',
    file: 'src/queue/limits.ts',
    find: 'window.used >= max',
    replace: 'window.used > max',
    tests: stores('limits'),
    only: 'on memory',
  },
  {
    name: 'a worker claims before the store counts its finished jobs',
    file: 'src/worker/startup.ts',
    find: 'await context.queueSetup.set();',
    replace: 'void context.queueSetup.set();',
    tests: stores('metrics'),
    only: 'metrics on memory',
  },
  {
    name: 'a worker whose jobs are taken by hand switches no metrics on',
    file: 'src/worker/worker.ts',
    find: 'await context.queueSetup.set();',
    replace: '',
    tests: stores('metrics'),
    only: 'metrics on memory',
  },
  {
    name: 'an own event may have the name of an event of a job',
    file: 'src/events/queue-events-producer.ts',
    find: "RESERVED.has(checked.split(':', 1)[0] ?? '')",
    replace: 'RESERVED.has(checked)',
    tests: stores('own-events'),
    only: 'own events on memory',
  },
  {
    name: 'a listener whose session the store has ended stays unlisted',
    file: 'src/lock/presence.ts',
    find: 'void this.opened();\n        },',
    replace: '},',
    tests: stores('own-events'),
    only: 'memory.*listed again',
  },
  {
    name: 'labels of Prometheus are not escaped',
    file: 'src/queue/metrics.ts',
    find: ".replaceAll('\\\\', '\\\\\\\\')",
    replace: '',
    tests: stores('metrics'),
    only: 'exportPrometheusMetrics',
  },
];

export const LIMITS = [...REDIS, ...SQLITE, ...POSTGRES, ...USERS];
