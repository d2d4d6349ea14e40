import { faults, unit } from './tests.mjs';

const LEADER_TESTS = unit('leader');

export const LEADER = [
  {
    name: 'a leader leads while it is unsure',
    file: 'src/lock/leader.ts',
    find: 'return this.#goesOn() && this.#term?.lock.isSure === true;',
    replace: 'return this.#goesOn();',
    tests: [...LEADER_TESTS, ...unit('trust-since-request')],
  },
  {
    name: 'a leader does not look at its lock',
    file: 'src/lock/leader.ts',
    find: 'if (term === undefined || term.lock.trusted) return term !== undefined;',
    replace: 'if (term === undefined || term.lock.fence > 0) return term !== undefined;',
    tests: LEADER_TESTS,
  },
  {
    name: 'the work of a term that is over begins',
    file: 'src/lock/leader.ts',
    find: '      if (controller.signal.aborted) return;\n      try {',
    replace: '      try {',
    tests: [...LEADER_TESTS, ...faults('leader')],
  },
  {
    name: 'a leader that leaves does not wait for its work',
    file: 'src/lock/leader.ts',
    find: 'if (lock.trusted) await this.#working;',
    replace: '',
    tests: LEADER_TESTS,
  },
  {
    name: 'a term that ends aborts nothing',
    file: 'src/lock/leader.ts',
    find: 'term.controller.abort(new HoldfastError(',
    replace: 'void (new HoldfastError(',
    tests: LEADER_TESTS,
  },
  {
    name: 'work that throws keeps the term',
    file: 'src/lock/leader.ts',
    find: "this.#stepDown(term, 'its work failed');",
    replace: '',
    tests: LEADER_TESTS,
  },
];
