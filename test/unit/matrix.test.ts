import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { inGate, numberOf } from '../support/run/matrix.js';
import { merged } from '../support/run/mixed-order.js';

const SERVERS = ['redis', 'redis-cluster', 'postgres'] as const;
const ENGINES = ['memory', 'sqlite', ...SERVERS] as const;
const FILES = ['../acceptance', '../faults'].flatMap((folder) =>
  readdirSync(new URL(folder, import.meta.url)).filter((name) => name.endsWith('.test.ts')),
);

test('the gate tests a file on memory and one other store', () => {
  for (const file of FILES) expect(inGate(ENGINES, file)).toEqual(['memory', expect.any(String)]);
});

test('SQLite takes about half of the files of the gate, and the servers share the others', () => {
  const shareOf = (store: (typeof ENGINES)[number], of: readonly (typeof ENGINES)[number][]): number =>
    FILES.filter((file) => inGate(of, file).includes(store)).length / FILES.length;
  expect(shareOf('sqlite', ENGINES)).toBeGreaterThan(0.4);
  for (const server of SERVERS) {
    expect(shareOf(server, ENGINES), server).toBeGreaterThan(0.1);
    expect(shareOf(server, SERVERS), server).toBeGreaterThan(0.2);
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
