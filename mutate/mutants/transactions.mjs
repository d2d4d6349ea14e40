// Steps, cancel and the transactions of users on SQLite: a step goes with its job, a cancelled job never waits again, and a call inside a
// transaction changes nothing that the transaction does not commit.
import { conformance, engines } from './tests.mjs';

export const TRANSACTIONS = [
  {
    name: 'sqlite: the steps of a job stay when the job goes',
    file: 'src/store/sqlite/leave.ts',
    find: "(to === 'removed' || to === 'trimmed') && (row[AT.marks] & MARK.steps) !== 0",
    replace: "to === 'removed' && (row[AT.marks] & MARK.steps) !== 0",
    tests: engines('sqlite/steps'),
  },
  {
    name: 'sqlite: a hand-back lets a cancelled job wait again',
    file: 'src/store/sqlite/sql/settle.sql',
    find: 'attemptsStarted - :unstarted,\n-- include: unlocked\nWHERE\n-- include: under-token\nAND marks & 256 = 0',
    replace: 'attemptsStarted - :unstarted,\n-- include: unlocked\nWHERE\n-- include: under-token\nAND marks & 256 >= 0',
    tests: conformance('sqlite'),
    only: 'cancel',
  },
  {
    name: 'sqlite: a delay lets a cancelled job wait again',
    file: 'src/store/sqlite/sql/settle.sql',
    find: '-- include: delayed\nAND marks & 288 = 0',
    replace: '-- include: delayed\nAND marks & 32 = 0',
    tests: conformance('sqlite'),
    only: 'cancel',
  },
  {
    name: 'sqlite: a stall lets a cancelled job wait again',
    file: 'src/store/sqlite/lock.ts',
    find: 'before < maxStalls && !isCancelled(row)',
    replace: 'before < maxStalls',
    tests: conformance('sqlite'),
    only: 'cancel',
  },
  {
    name: 'sqlite: a call that fails in a transaction stays there in part',
    file: 'src/store/sqlite/state/guests.ts',
    find: 'ROLLBACK TO holdfast; RELEASE holdfast',
    replace: 'RELEASE holdfast',
    tests: engines('sqlite/transactions'),
  },
  {
    name: 'sqlite: a call joins a connection without a transaction',
    file: 'src/store/sqlite/state/guests.ts',
    find: 'if (!guest.db.inTransaction) {',
    replace: 'if (guest === undefined) {',
    tests: engines('sqlite/transactions'),
  },
  {
    name: 'sqlite: a call joins a connection to any file',
    file: 'src/store/sqlite/state/guests.ts',
    find: 'return fs.realpathSync(file) === real;',
    replace: "return fs.realpathSync(file) !== '' || real === '';",
    tests: engines('sqlite/transactions'),
  },
  {
    name: 'sqlite: the store keeps rows of queues over the commit of a user',
    file: 'src/store/sqlite/state/commit.ts',
    find: 'this.#lock.othersWrote ? undefined : this.#known',
    replace: 'this.#known',
    tests: engines('sqlite/transactions'),
  },
];
