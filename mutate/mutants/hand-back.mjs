// What ends in order hands back at once, and counts no stall.
import { conformance, faults, unit } from './tests.mjs';

export const HAND_BACK = [
  {
    name: 'a close counts as a stall',
    file: 'src/session/session-owner.ts',
    find: "[{ queue: session.queue, id: session.id }], 'closed');",
    replace: "[{ queue: session.queue, id: session.id }], 'crashed');",
    tests: faults('closing', 'manual'),
  },
  {
    name: 'an exit counts as a crash',
    file: 'src/background/lock-thread.ts',
    find: 'how = crashed && code !== 0 ?',
    replace: 'how = crashed || code === 0 ?',
    tests: faults('process-end'),
  },
  {
    name: 'a crash counts no stall',
    file: 'src/background/lock-thread.ts',
    find: 'how = crashed && code !== 0 ?',
    replace: 'how = crashed && code === 0 ?',
    tests: faults('process-end'),
  },
  {
    name: 'an exit does not wait for the hand-back',
    file: 'src/background/lock-thread.ts',
    find: 'Atomics.wait(new Int32Array(this.#handedBack), 0, 0, HAND_BACK_MS);',
    replace: 'Atomics.wait(new Int32Array(this.#handedBack), 0, 1, HAND_BACK_MS);',
    tests: faults('process-end'),
  },
  {
    name: 'the thread hands back only what was retired',
    file: 'src/background/thread-store.ts',
    find: '[...retired, ...[...this.#held.values()].map(({ plan: { queue, id } }) => ({ queue, id }))];',
    replace: '[...retired];',
    tests: faults('process-end'),
  },
  {
    name: 'what was retired is not handed back at the exit',
    file: 'src/background/thread-service.ts',
    find: 'if (handBackAtExit && ref !== undefined) this.#retired',
    replace: 'if (!handBackAtExit && ref !== undefined) this.#retired',
    tests: faults('process-end', 'closing'),
  },
  {
    name: 'the thread is gone, and the loop does not stand in',
    file: 'src/background/thread-renewer.ts',
    find: '      this.#standInFor(entry, 0);\n',
    replace: '',
    tests: faults('lock-thread'),
  },
  {
    name: 'memory: a close counts as a stall',
    file: 'src/store/memory/session.ts',
    find: "if (how === 'crashed') stall(queue, lost, now);",
    replace: "if (how !== 'crashed') stall(queue, lost, now);",
    tests: conformance('memory'),
    only: 'closing|sessions',
  },
  {
    name: 'a job that was never begun is handed back as one that was',
    file: 'src/worker/outbox.ts',
    find: "this.#giveBack('return', jobs);",
    replace: "this.#giveBack('release', jobs);",
    tests: [...unit('prefetch'), 'test/acceptance/prefetch.test.ts'],
  },
];
