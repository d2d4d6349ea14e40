// How a worker closes, and the children of its sandbox.
import { faults, inFile, unit } from './tests.mjs';

const closing = { tests: faults('closing', 'close-timeout'), only: 'on memory' };
const lifecycle = { tests: unit('worker-lifecycle') };
const pool = { tests: unit('sandbox') };

export const CLOSING = [
  ...inFile(
    'src/worker/shutdown.ts',
    closing,
    [
      'a handler that ignores its signal keeps the worker open',
      'runs?.giveUp((jobId) => shutdownError(context.name, jobId));',
      "if (context.name === '') runs?.giveUp((jobId) => shutdownError(context.name, jobId));",
    ],
    ['jobs that were taken by hand are kept', 'await manual.handBack();', 'void manual;'],
    [
      'jobs that were claimed ahead are kept',
      'runs?.handBackAhead();',
      'void runs;',
      { tests: unit('prefetch'), only: undefined },
    ],
    [
      'a timeout interrupts nobody',
      'void lifecycle.due.then(() => interrupt(stations));',
      "void lifecycle.due.then(() => (name === '' ? interrupt(stations) : undefined));",
    ],
    ['an interrupted handler does not hear of it', 'withdrawAll(context);\n  await within', 'await within'],
    ['a store that does not reply holds up closing', 'calls.close(opts.lockDuration);', 'calls.close(opts.lockDuration * 1000);'],
    ['the session is not closed', 'await step(context, owner.close());', 'void owner;'],
  ),
  ...inFile(
    'src/worker/lifecycle.ts',
    lifecycle,
    [
      'a later end of the wait counts',
      "this.#phase === 'closed' || at >= this.#dueAt",
      "this.#phase === 'closed' || at >= this.#dueAt + 1e12",
      { tests: faults('close-timeout'), only: 'on memory' },
    ],
    ['force is not heard', 'if (force) this.#force.open();', 'if (force && this.#byHand) this.#force.open();'],
    [
      'a closed worker is idle again',
      "if (this.#phase !== 'starting') return;\n    this.#phase = 'idle';",
      "this.#phase = 'idle';",
    ],
    ['closing runs twice', 'if (this.#closing === undefined) {', 'if (this.#closing === undefined || !force) {'],
    [
      'a worker runs twice',
      'if (this.isRunning) throw new HoldfastError',
      'if (this.isRunning && this.#byHand) throw new HoldfastError',
    ],
    ['a refused start is not told', 'this.#start?.ended.fail(reason);', ''],
  ),
  ...inFile(
    'src/sandbox/pool.ts',
    pool,
    ['failures to load are never forgotten', 'this.#loads = true;\n      this.#failures = 0;', 'this.#loads = true;'],
    ['a broken file starts a storm', 'if (this.#failures >= FAILURES_UNTIL_PAUSE) {', 'if (this.#failures < 0) {'],
    [
      'a child runs more jobs than it may',
      'child.jobs >= this.#settings.options.maxJobsPerChild',
      'child.jobs > this.#settings.options.maxJobsPerChild',
    ],
    ['a retired child is used again', 'child.isRetired || child.hasProcessExited()', 'child.hasProcessExited()'],
    [
      'idle children stay',
      'if (now - child.idleSince >= maxIdleMs) this.#retire(child);',
      'if (now + maxIdleMs < 0) this.#retire(child);',
    ],
    [
      'a job that waits for a child does not hear of the end',
      'aborted === undefined ? starts : Promise.race([starts, aborted.promise])',
      'starts',
    ],
    [
      'a job that never began fails at closing',
      'if (lock instanceof HeldLock) lock.withdraw(error);',
      "if (lock instanceof HeldLock && queue === '') lock.withdraw(error);",
    ],
    ['failures are not reported', 'if (this.#failures !== FAILURES_UNTIL_PAUSE ||', 'if (this.#failures !== -1 ||'],
  ),
];
