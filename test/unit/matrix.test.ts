import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { inGate, numberOf } from '../support/run/matrix.js';
import { merged } from '../support/run/mixed-order.js';

const SERVERS = ['redis', 'redis-cluster', 'postgres'] as const;
const ENGINES = ['memory', 'sqlite', ...SERVERS] as const;
const FILES = ['../acceptance', '../faults'].flatMap((folder) =>
  readdirSync(new URL(folder, import.meta.url)).filter((name) => name.endsWith('.test.ts')),
);

test('the gate tests a file on memory, SQLite and one store behind a server', () => {
  for (const file of FILES) {
    const engines = inGate(ENGINES, file);
    expect(engines).toHaveLength(3);
    expect(engines.slice(0, 2)).toEqual(['memory', 'sqlite']);
  }
});

test('the files of the gate share the stores evenly', () => {
  for (const server of SERVERS) {
    const share = FILES.filter((file) => inGate(SERVERS, file).includes(server)).length / FILES.length;
    expect(share, server).toBeGreaterThan(1 / 4);
  }
});

test('a file gets the same store wherever the repository lies', () => {
  expect(inGate(ENGINES, '/somewhere/test/faults/closing.test.ts')).toEqual(inGate(ENGINES, '/closing.test.ts'));
  expect(numberOf('/somewhere/closing.test.ts')).toBe(numberOf('closing.test.ts'));
});

test('two lists are merged in their order, each spread over the whole', () => {
  expect(merged([1, 2, 3, 4], [10, 20])).toEqual([1, 10, 2, 3, 20, 4]);
  expect(merged([], [1])).toEqual([1]);
});
