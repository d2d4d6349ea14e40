import { expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { chaos, LIMIT, SHORT } from './program.js';

// An odd seed runs a schedule, an even one steps clocks.
test.each(oneInThisRun([1, 2], 'schedule or clocks'))(
  'a short run on sqlite breaks no promise (seed %i)',
  LIMIT,
  async (seed) => {
    const { code, output } = await chaos('--store', 'sqlite', '--seed', String(seed), ...SHORT);
    expect(Number(/^schedule +(\d+) slots$/m.exec(output)?.[1] ?? 0) > 0).toBe(seed === 1);
    expect(output).toContain('No violation.');
    expect(Number(/^(\d+) faults$/m.exec(output)?.[1])).toBeGreaterThan(1);
    expect(Number(/(\d+) completed/.exec(output)?.[1])).toBeGreaterThan(0);
    expect(code).toBe(0);
  },
);
