import { faults, unit } from './tests.mjs';

const TABLE = unit('lock-table');

export const LOCK_TABLE = [
  {
    name: 'a lock that is no longer trusted is taken on',
    file: 'src/session/lock-table.ts',
    find: "if (notice?.kind === 'revoked' || !lock.trusted) return false;",
    replace: "if (notice?.kind === 'revoked') return false;",
    tests: TABLE,
  },
  {
    name: 'a lock that was taken away on its way here is taken on',
    file: 'src/session/lock-table.ts',
    find: "if (notice?.kind === 'revoked' || !lock.trusted) return false;",
    replace: 'if (!lock.trusted) return false;',
    tests: TABLE,
  },
  {
    name: 'a handler that has ended is told of its loss',
    file: 'src/session/lock-table.ts',
    find: '(lock) => !lock.finishing && lock.lose(reason)',
    replace: '(lock) => lock.lose(reason)',
    tests: [...TABLE, ...faults('renewal')],
  },
  {
    name: 'a session that ends takes pinned locks with it',
    file: 'src/session/lock-table.ts',
    find: 'lock.session === session && !lock.trusted)',
    replace: 'lock.session === session)',
    tests: TABLE,
  },
  {
    name: 'a new deadline of the same session needs no look',
    file: 'src/session/lock-table.ts',
    find: 'session === this.#covered && trustedUntil === this.#coveredUntil) return;',
    replace: 'session === this.#covered && trustedUntil !== 0) return;',
    tests: TABLE,
    equivalent:
      'deadlines only move later, and the look that is due at the earlier one looks again; after a look nothing is covered',
  },
  {
    name: 'a shorter extension needs no look',
    file: 'src/session/lock-table.ts',
    find: '    lock.shorten(sentAt, durationMs);\n    this.#lookIn(lock.trustedForMs(), lock);\n',
    replace: '    lock.shorten(sentAt, durationMs);\n',
    tests: [...TABLE, ...unit('trust-since-request')],
  },
  {
    name: 'the timer looks once',
    file: 'src/session/lock-table.ts',
    find: 'else this.#lookIn(left, lock);',
    replace: '',
    tests: TABLE,
  },
  {
    name: 'a lost lock is told of twice',
    file: 'src/session/held-lock.ts',
    find: 'if (this.#lost || this.#released) return false;',
    replace: 'if (this.#released) return false;',
    tests: TABLE,
  },
  {
    name: 'lost locks are renewed ones',
    file: 'src/session/lock-table.ts',
    find: '!lock.timed && lock.trusted) ids.push',
    replace: '!lock.timed) ids.push',
    tests: [...TABLE, ...faults('renewal')],
  },
  {
    name: 'the ceiling of a blocked loop is not looked at',
    file: 'src/background/thread-service.ts',
    find: 'return !over;',
    replace: 'return true;',
    tests: ['test/acceptance/s0-blocked-loop.test.ts'],
    only: 'S0-18',
  },
  {
    name: 'a cancel that came before the reply of its claim is forgotten',
    file: 'src/session/lock-table.ts',
    find: 'if (notice !== undefined) lock.doom(notice.reason);',
    replace: '',
    tests: TABLE,
  },
  {
    name: 'a cancel takes the lock away',
    file: 'src/session/lock-table.ts',
    find: "else if (notice.kind === 'revoked') this.#lose([lock], notice.reason);",
    replace: 'else if (notice.kind !== undefined) this.#lose([lock], notice.reason);',
    tests: TABLE,
  },
];
