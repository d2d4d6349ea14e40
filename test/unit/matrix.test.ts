import { expect, test } from 'vitest';
import { inTurn, oneInTurn } from '../support/run/matrix.js';
import { merged } from '../support/run/mixed-order.js';

const ENGINES = ['memory', 'sqlite', 'redis', 'redis-cluster', 'postgres'] as const;
const FILES = ['/a/s0-basics.test.ts', '/a/s0-events.test.ts', '/a/s1-lock-manager.test.ts', '/a/closing.test.ts'];

test('each turn of the gate tests memory, SQLite and one store behind a server', () => {
  for (const file of FILES) {
    const engines = inTurn(ENGINES, 20_000, file);
    expect(engines).toHaveLength(3);
    expect(engines.slice(0, 2)).toEqual(['memory', 'sqlite']);
  }
});

test('as many turns as there are such stores test a file on all of them', () => {
  for (const file of FILES) {
    const tested = [0, 1, 2].flatMap((turn) => inTurn(ENGINES, 20_000 + turn, file));
    expect(new Set(tested)).toEqual(new Set(ENGINES));
  }
});

test('a file gets the same store wherever the repository lies', () => {
  expect(inTurn(ENGINES, 5, '/somewhere/test/faults/closing.test.ts')).toEqual(inTurn(ENGINES, 5, '/closing.test.ts'));
});

test('as many turns as there are things test each of them once', () => {
  const tested = [0, 1, 2, 3].flatMap((turn) => oneInTurn(['a', 'b', 'c', 'd'], 20_000 + turn, 'any'));
  expect(tested.toSorted()).toEqual(['a', 'b', 'c', 'd']);
});

test('two lists are merged in their order, each spread over the whole', () => {
  expect(merged([1, 2, 3, 4], [10, 20])).toEqual([1, 10, 2, 3, 20, 4]);
  expect(merged([], [1])).toEqual([1]);
});
