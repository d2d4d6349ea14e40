import { expect, test } from 'vitest';
import { chaos, inTurn, LIMIT, SHORT } from './program.js';

test.runIf(inTurn('postgres'))('a short run on postgres breaks no promise', LIMIT, async () => {
  const { code, output } = await chaos('--store', 'postgres', ...SHORT);
  expect(output).toContain('No violation.');
  expect(Number(/^(\d+) faults$/m.exec(output)?.[1])).toBeGreaterThan(1);
  expect(Number(/(\d+) completed/.exec(output)?.[1])).toBeGreaterThan(0);
  expect(Number(/^schedule +(\d+) slots$/m.exec(output)?.[1])).toBeGreaterThan(0);
  expect(code).toBe(0);
});
