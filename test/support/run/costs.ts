// What each test file costs: `HOLDFAST_TEST_COSTS=costs.txt npm test` appends a line for each file, with its seconds of processor time (its
// own, and that of the processes that it started and that have ended), its seconds of wall time, its pace (test/support/wait/pace.ts), and its path.
// Servers that files share are not in it.
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';
import { PACE } from '../wait/pace.js';

const file = process.env['HOLDFAST_TEST_COSTS'];
/** Of the fields of /proc/…/stat after the name: user and system time, and those of children that have ended. In ticks. */
const [FIRST, LAST] = [11, 15];
const TICKS_A_SECOND = 100;

const began = performance.now();
const before = processorSeconds();

if (file !== undefined && file !== '') {
  // Hooks run in reverse order, and setup files come first: this is the last one of the file.
  afterAll(() => {
    const path = relative(process.cwd(), expect.getState().testPath ?? '');
    const wall = (performance.now() - began) / 1000;
    appendFileSync(file, `${(processorSeconds() - before).toFixed(2)} ${wall.toFixed(2)} ${PACE.toFixed(2)} ${path}\n`);
  });
}

function processorSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(FIRST, LAST).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_A_SECOND;
}
