import { expect, test } from 'vitest';
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
