import { describe, expect, test } from 'vitest';
import { SessionMemory, SLOTS_PER_BLOCK } from '../../src/session/session-memory.js';
import { moment } from '../../src/session/trust.js';

test('only ever extends trust when replies overtake each other', () => {
  const memory = new SessionMemory();
  memory.startTrust(moment(1000));
  memory.extendTrust(moment(3000));
  memory.extendTrust(moment(2000));
  expect(memory.trustedUntil).toBe(3000);
});

test('extends trust across the wrap-around of 32 bits', () => {
  const memory = new SessionMemory();
  memory.startTrust(moment(2 ** 31 - 10));
  memory.extendTrust(moment(2 ** 31 + 10));
  expect(memory.trustedUntil).toBe(moment(2 ** 31 + 10));
});

test('shows a taken lock to the other thread, which can lose it by its fence, in any block', () => {
  const memory = new SessionMemory();
  const renewer = new SessionMemory({ words: memory.buffers.words, slots: [...memory.buffers.slots] });
  renewer.addBlock(memory.addBlock());
  for (const slot of [0, 7, SLOTS_PER_BLOCK, 2 * SLOTS_PER_BLOCK - 1]) memory.occupy(slot, 1_700_000_000_000_000 + slot);
  renewer.lose(1_700_000_000_000_000 + SLOTS_PER_BLOCK);
  expect([0, 7, SLOTS_PER_BLOCK, 2 * SLOTS_PER_BLOCK - 1].map((slot) => memory.holds(slot))).toEqual([true, true, false, true]);
});

test('ignores a late fence for the next lock in the slot', () => {
  const memory = new SessionMemory();
  memory.occupy(3, 41);
  memory.vacate(3);
  memory.occupy(3, 42);
  memory.lose(41);
  expect(memory.holds(3)).toBe(true);
});

describe('a job that was claimed ahead', () => {
  const FENCE = 1_700_000_000_000_000;

  test('is held, counted and found like any other', () => {
    const memory = new SessionMemory();
    memory.occupy(0, FENCE, true);
    memory.occupy(1, FENCE + 1);
    expect([memory.holds(0), memory.holdsFence(0, FENCE), memory.holdsAny, memory.fences(10)]).toEqual([
      true,
      true,
      true,
      [FENCE, FENCE + 1],
    ]);
  });

  test('begins, and is not taken back then', () => {
    const memory = new SessionMemory();
    memory.occupy(0, FENCE, true);
    expect(memory.begin(0, FENCE)).toBe(true);
    expect(memory.takeAhead()).toEqual([]);
    expect(memory.holds(0)).toBe(true);
  });

  test('is taken back, and does not begin then, in any block', () => {
    const memory = new SessionMemory();
    const renewer = new SessionMemory({ words: memory.buffers.words, slots: [...memory.buffers.slots] });
    renewer.addBlock(memory.addBlock());
    memory.occupy(0, FENCE);
    memory.occupy(1, FENCE + 1, true);
    memory.occupy(SLOTS_PER_BLOCK, FENCE + 2, true);
    expect(renewer.takeAhead()).toEqual([FENCE + 1, FENCE + 2]);
    expect([memory.begin(1, FENCE + 1), memory.begin(SLOTS_PER_BLOCK, FENCE + 2)]).toEqual([false, false]);
    expect([0, 1, SLOTS_PER_BLOCK].map((slot) => memory.holds(slot))).toEqual([true, false, false]);
    expect(renewer.takeAhead()).toEqual([]);
  });

  test('that is lost does not begin, before and after its beginning', () => {
    const memory = new SessionMemory();
    memory.occupy(0, FENCE, true);
    memory.lose(FENCE);
    expect(memory.begin(0, FENCE)).toBe(false);
    memory.occupy(1, FENCE + 1, true);
    memory.begin(1, FENCE + 1);
    memory.loseSlot(1, FENCE + 1);
    expect([memory.holds(0), memory.holds(1), memory.takeAhead()]).toEqual([false, false, []]);
  });
});

test('asks for one watch at a time', () => {
  const memory = new SessionMemory();
  expect([memory.isWatched, memory.watch(), memory.watch(), memory.isWatched]).toEqual([false, true, false, true]);
  memory.unwatch();
  expect(memory.watch()).toBe(true);
});
