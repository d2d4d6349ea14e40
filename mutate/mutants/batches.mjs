// Batches, and jobs that are claimed ahead.
import { inFile, stores, unit } from './tests.mjs';

const batches = { tests: ['test/acceptance/batches.test.ts', ...stores('batches')], only: 'on memory|a batch|batch is' };
const slots = { tests: unit('batch-slots') };
const begins = { tests: unit('batch-runner'), only: undefined };
const ahead = { tests: unit('prefetch-buffer', 'prefetch') };

export const BATCHES = [
  ...inFile(
    'src/worker/batch-slots.ts',
    slots,
    ['one batch too many may run', '(this.open + 1) * this.size', 'this.open * this.size'],
    [
      'jobs that are not acknowledged free their batch',
      'Math.ceil(unacknowledged / this.size)',
      'Math.floor(unacknowledged / this.size)',
    ],
    ['waiting jobs are claimed once more', ' - this.waiting);', ');'],
  ),
  ...inFile(
    'src/worker/batch.ts',
    batches,
    ['a lost job stays pending', '.filter(({ lock }) => lock.held)', ''],
    ['one aborted job aborts its batch', 'open.every(', 'open.some('],
    ['a list of another length is taken', '&& value.length === this.jobs.length', ''],
    ['a batch that has ended takes decisions', '    this.#undecided.clear();\n', ''],
    [
      'the last decision does not wait for the processor',
      'if (this.#undecided.size > 0) {\n      decision',
      'if (this.jobs.length > 0) {\n      decision',
    ],
    [
      'a decided job goes back at a shutdown',
      "if (lock.signal.aborted) this.#endLast();\n    else lock.signal.addEventListener('abort', () => this.#endLast());",
      'void lock;',
    ],
    [
      'a batch that throws completes its jobs',
      'this.#end((entry) => this.#decisions.failed(entry, error));',
      'this.#end((entry) => this.#decisions.completed(entry, error));',
    ],
    ['results are mixed up', '(value as unknown[] | undefined)?.[index]]', '(value as unknown[] | undefined)?.[index * 0]]'],
  ),
  ...inFile(
    'src/worker/batch-runner.ts',
    batches,
    ['a batch does not wait for the rest of a claim', '(count >= minSize && !this.#more)', 'count >= minSize'],
    ['a full batch waits', 'count >= size || this.#isDue', 'count >= 2 * size || this.#isDue', begins],
    ['an ended batch keeps its slot', 'this.#options.slots.open -= 1;', ''],
    ['a batch takes all that wait', '.slice(0, batch.size)', ''],
    [
      'a job begins whose lock is not trusted',
      'const trusted = entries.filter(({ lock }) => lock.trusted);',
      'const trusted = entries;',
      begins,
    ],
  ),
  ...inFile(
    'src/worker/prefetch-buffer.ts',
    ahead,
    [
      'a job that began counts as old',
      'this.#jobs.delete(first.value.lock);\n    this.#old -= 1;',
      'this.#jobs.delete(first.value.lock);',
    ],
    ['jobs that wait for their turn are taken for claimed ahead', '? TICK_MS : AHEAD_TICK_MS', '? TICK_MS - 238 : AHEAD_TICK_MS'],
    ['old jobs stay', 'if (this.#old > 0 && this', 'if (this.#old < 0 && this'],
    [
      'a lost job counts as old',
      'newer jobs would go back too early.\n    this.#old -= 1;',
      'newer jobs would go back too early.',
    ],
    [
      'a job goes back at its first tick',
      'this.#old = this.#jobs.size;',
      'this.#old = this.#jobs.size; if (this.#old > 0) this.#onStale();',
    ],
    [
      'the newest job begins first',
      'const first = this.#jobs.values().next();',
      'const first = [...this.#jobs.values()].reverse().values().next();',
    ],
  ),
  ...inFile(
    'src/worker/slots.ts',
    ahead,
    ['jobs in hand are not counted', 'this.concurrency + ahead - this.inHand + ending', 'this.concurrency + ahead + ending'],
    ['a lowered concurrency claims ahead', 'if (this.running > this.concurrency) return 0;', ''],
    ['more is claimed ahead than the slots get to', 'Math.min(this.prefetch, this.pace.expected())', 'this.prefetch'],
  ),
  ...inFile(
    'src/worker/pace.ts',
    ahead,
    ['a standstill does not end claiming ahead', 'broken(): void {\n    this.#before = 0;', 'broken(): void {'],
    ['the pace of this window does not count', 'Math.max(this.#before, pace)', 'this.#before'],
    ['a slow store is not claimed ahead for', 'ROUND_TRIPS * this.#roundTripMs', '(ROUND_TRIPS - 4) * this.#roundTripMs'],
  ),
  ...inFile(
    'src/session/session-memory.ts',
    { tests: unit('session-memory', 'ahead-watch') },
    ['a job that was given back begins', 'AHEAD | begun, begun) === (AHEAD | begun)', 'AHEAD | begun, begun) !== 0n'],
    ['a job that runs is given back', 'if (word < AHEAD) continue;', 'if (word <= 0n) continue;'],
    ['a lost job that was claimed ahead begins', '[AHEAD | held, held]', '[held]'],
  ),
  ...inFile(
    'src/background/ahead-watch.ts',
    { tests: unit('ahead-watch') },
    [
      'a worker that waits a little is taken for blocked',
      'between(at, time) > BLOCKED_MS',
      'between(at, time) > BLOCKED_MS - 51',
    ],
    ['a thread that stood still takes the worker for blocked', 'ownGap > OWN_GAP_MS', 'ownGap < -OWN_GAP_MS'],
    ['a worker that claims ahead as its watch ends is forgotten', ' || !memory.watch()', ' || true'],
  ),
];
