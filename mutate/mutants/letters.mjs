// Dead letters that go back, and the times of day of schedules.
import { inFile, unit } from './tests.mjs';

const redrive = {
  tests: ['test/stores/flows.test.ts', 'test/acceptance/s6-flows.test.ts'],
  only: 'memory.*(letter|redrive)|(letter|redrive)',
};
const cron = { tests: unit('job-cron') };

export const LETTERS = [
  ...inFile(
    'src/queue/redrive.ts',
    redrive,
    [
      'redrive sends more than its count',
      "Math.min(checkInteger('count', count, { min: 1 }), all)",
      "Math.max(checkInteger('count', count, { min: 1 }), all)",
    ],
    ['a letter without origin hides those behind it', 'passed += jobs.length - here;', 'if (here === 0) break;'],
    ['letters that were run are left', "'delayed', 'completed', 'failed'];", "'delayed'];"],
  ),
  ...inFile(
    'src/job/cron.ts',
    cron,
    ['a repeated time comes twice', 'if (time > after) return time;', 'return time;'],
    ['the parts of a pattern are not compared', '(first === undefined || time < first)', 'first === undefined'],
    ['a list of times is an interval', 'if (!/^[\\d, ]+$/.test(whole)) return [whole];', 'if (whole.length > 5) return [whole];'],
  ),
  ...inFile(
    'src/job/wall-clock.ts',
    cron,
    ['a skipped time comes as late as the gap is long', 'while (late - early > 1) {', 'while (late - early > 86_400_000) {'],
    ['a repeated time comes at its second', 'Math.max(this.#aheadAt(wall - DAY_MS)', 'Math.min(this.#aheadAt(wall - DAY_MS)'],
  ),
];
