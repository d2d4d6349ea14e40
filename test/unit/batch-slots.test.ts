// The slots of a worker with batches.
import { expect, test } from 'vitest';
import { BatchSlots } from '../../src/worker/batch-slots.js';

interface Counts {
  open?: number;
  running?: number;
  waiting?: number;
  inHand?: number;
}

function slotsOf(batches: number, size: number, counts: Counts = {}): BatchSlots {
  return Object.assign(new BatchSlots(batches, size), counts);
}

test('as many batches may begin as the concurrency says', () => {
  const slots = slotsOf(2, 10);
  const seen: boolean[] = [];
  for (; slots.open < 3; slots.open += 1) seen.push(slots.hasFree);
  expect(seen).toEqual([true, true, false]);
  slots.open = 2;
  slots.set(3);
  expect(slots.hasFree).toBe(true);
  slots.set(1);
  slots.open = 1;
  expect(slots.hasFree).toBe(false);
});

test.each<[string, Counts, number, number]>([
  ['nothing runs', {}, 0, 20],
  ['a small batch runs', { open: 1, running: 3, inHand: 3 }, 0, 10],
  ['jobs wait for their batch', { open: 1, running: 3, waiting: 2, inHand: 5 }, 0, 8],
  ['one ended job is not acknowledged', { inHand: 1 }, 0, 10],
  ['eleven ended jobs are not acknowledged', { inHand: 11 }, 0, 0],
  ['the ended jobs go with this call', { inHand: 11 }, 11, 20],
  ['a batch runs beside ended jobs', { open: 1, running: 10, inHand: 12 }, 0, 0],
  ['the concurrency was lowered while more ran', { open: 3, running: 30, inHand: 30 }, 0, 0],
])('jobs are claimed for the batches that can begin: %s', (_title, counts, ending, free) => {
  // A waiting job is counted among those that run: see Slots.
  const running = (counts.running ?? 0) + (counts.waiting ?? 0);
  expect(slotsOf(2, 10, { ...counts, running }).freeAfter(ending)).toBe(free);
});
