// A soak is as good as its rule: curves that were made up, and what it must say of them.
import { expect, test } from 'vitest';
import { verdictsOf } from '../../soak/verdict.mjs';

const MS = 3_600_000;
const SAMPLES = 360;
const COLUMNS = new Map([['heap', { share: 0.1, slack: 2 }]]);

/** `at` gets the part of the run that has passed; undefined is a gap. */
function verdict(at: (part: number) => number | undefined): { before: number; after: number; most: number; flat?: boolean } {
  const samples = Array.from({ length: SAMPLES }, (_, index) => {
    const part = (index + 1) / SAMPLES;
    return { ms: part * MS, values: { heap: at(part) } };
  });
  return verdictsOf(samples, COLUMNS, MS).get('heap') as ReturnType<typeof verdict>;
}

const noise = (part: number): number => 3 * Math.sin(part * 1000);

test('a level with noise is flat', () => {
  expect(verdict((part) => 50 + noise(part))).toMatchObject({ flat: true });
});

test('what rises in the first quarter only, or falls, is flat', () => {
  expect(verdict((part) => 20 + 100 * Math.min(part, 0.25))).toMatchObject({ before: 45, after: 45, flat: true });
  expect(verdict((part) => 100 - 50 * part)).toMatchObject({ flat: true });
});

test('a slow and steady rise is not flat, below its noise or not', () => {
  expect(verdict((part) => 50 + 20 * part)).toMatchObject({ flat: false });
  expect(verdict((part) => 50 + 20 * part + noise(part))).toMatchObject({ flat: false });
  expect(verdict((part) => 50 + 10 * part)).toMatchObject({ flat: true });
});

test('peaks in fewer than half of the samples of a quarter say nothing, a step up does', () => {
  expect(verdict((part) => (Math.round(part * SAMPLES) % 5 === 0 ? 500 : 50))).toMatchObject({ flat: true });
  expect(verdict((part) => (part < 0.6 ? 50 : 60))).toMatchObject({ before: 50, after: 60, flat: false });
});

test('gaps are left out; a quarter without a sample is no pass', () => {
  expect(verdict((part) => (Math.round(part * SAMPLES) % 3 === 0 ? undefined : 50))).toMatchObject({ flat: true });
  expect(verdict((part) => (part < 0.75 ? 50 : undefined)).flat).toBeUndefined();
});
