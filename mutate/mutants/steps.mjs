// Steps, sleeps and signals.
import { engines, inFile, stores, unit } from './tests.mjs';

const memory = { tests: stores('steps'), only: 'steps on memory' };
const moved = { tests: stores('moved-jobs'), only: 'on memory' };

export const STEPS = [
  ...inFile(
    'src/handle/steps.ts',
    memory,
    ['the key of a step is that of an earlier job of the same id', 'record.id, record.timestamp].map', 'record.id].map'],
    [
      'the key of a step is the same for all jobs',
      'context.name, record.id, record.timestamp]',
      'context.name, record.timestamp]',
    ],
    [
      'a run that must stop begins another step',
      '// A run that must stop does not begin another step.\n    lock.signal.throwIfAborted();',
      '// A run that must stop does not begin another step.',
    ],
    [
      'a step beyond the last one begins',
      'if (steps.size >= MAX_STEPS) throw this.#full(name);',
      '',
      { tests: ['test/hostile/steps.test.ts'], only: 'on memory.*thousandth' },
    ],
    ['a sleep does not wait for the steps beside it', 'await this.#stepsEnd();\n    lock', 'void this.#stepsEnd();\n    lock'],
    ['two waits at once end the run', 'if (this.#isTorn) throw', "if (this.#isTorn && name === '') throw"],
    ['a second wait at the same time is no mistake', 'if (this.#leaving !== undefined) {', 'if (this.#leaving === name) {'],
    [
      'a wait that goes on begins anew',
      'Number(recorded.get(wait) ?? this.#now() + timeoutMs)',
      'Number(this.#now() + timeoutMs)',
    ],
    ['a short wait ends at once', 'recorded.has(wait) && delayMs <= EARLY_MS', 'delayMs <= EARLY_MS'],
    [
      'a signal that comes while the wait begins is lost',
      '      this.#recorded = undefined;\n      recorded = await this.#load();',
      '      recorded = await this.#load();',
    ],
    ['a name may be used twice in a run', 'if (before !== undefined) {', 'if (before !== undefined && stored === "") {'],
    ['a run that has ended takes steps', 'if (ended || isCompleting)', 'if ((ended && isCompleting) || isCompleting)', moved],
    [
      'a record that got no reply is given up',
      'if (!isRetryable(thrown) || !this.#snapshot.lock.held) throw thrown;',
      'if (!isRetryable(thrown) || this.#snapshot.lock.held) throw thrown;',
    ],
    [
      'a record is repeated without its lock',
      'if (!isRetryable(thrown) || !this.#snapshot.lock.held) throw thrown;',
      'if (!isRetryable(thrown)) throw thrown;',
    ],
    [
      'a committed step is not read again',
      'this.#snapshot.record.hasSteps = true;\n    this.#recorded = undefined;',
      'this.#snapshot.record.hasSteps = true;',
      { tests: engines('sqlite/transactions'), only: 'step' },
    ],
    ['a wait that timed out returns', 'data === undefined || data === TIMED_OUT', 'data === undefined'],
    [
      'a timeout is listed as a signal',
      "if (kind === 'signal' && value === TIMED_OUT)",
      "if (kind === 'wait' && value === TIMED_OUT)",
    ],
    ['a forgotten step is not noticed', 'return this.#open.size > 0;', 'return this.#open.size > 100;'],
    ['the steps that were asked for are said to be unasked', '&& !this.#asked.has(name)', '&& this.#asked.has(name)'],
    ['a caught suspension is not known', 'this.#suspension = name;', ''],
    ['undefined is no result of a step', "if (result === undefined) return 'null';", ''],
  ),
  ...inFile('src/worker/runs.ts', memory, [
    'a handler that returns after a suspension is not warned',
    '(returned === true || error !== undefined)',
    '(returned === false || error !== undefined)',
  ]),
  ...inFile('src/job/step-names.ts', memory, ['a step and a signal share their names', "signal: 'g' }", "signal: 's' }"]),
  ...inFile('src/queue/cancelling.ts', memory, [
    'a second signal of a name is said to have come',
    'return reply?.value === value;',
    'return true;',
  ]),
  ...inFile(
    'src/worker/runner.ts',
    { tests: unit('worker-runner') },
    [
      'what a handler threw after its own move is swallowed',
      'MOVED.has(error.name) ?',
      "MOVED.has(error.name) || error.name !== '' ?",
    ],
    ['a suspension is emitted as an error', 'MOVED.has(error.name) ?', 'MOVED.has(error.message) ?'],
  ),
];
