import { expect, test } from 'vitest';
import { chaos, inTurn, LIMIT, SHORT } from './program.js';

test.runIf(inTurn('redis'))('a short run on redis breaks no promise', LIMIT, async () => {
  const { code, output } = await chaos('--store', 'redis', ...SHORT);
  expect(output).toContain('No violation.');
  expect(Number(/^(\d+) faults$/m.exec(output)?.[1])).toBeGreaterThan(1);
  expect(Number(/(\d+) completed/.exec(output)?.[1])).toBeGreaterThan(0);
  expect(Number(/^schedule +(\d+) slots$/m.exec(output)?.[1])).toBeGreaterThan(0);
  expect(Number(/^groups +(\d+) runs$/m.exec(output)?.[1])).toBeGreaterThan(0);
  expect(Number(/^rate +(\d+) starts$/m.exec(output)?.[1])).toBeGreaterThan(0);
  expect(code).toBe(0);
});
