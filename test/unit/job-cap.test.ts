import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Claimant, roomUnderCap } from '../../src/job/cap.js';
import { seedOfTest } from '../support/run/seed.js';

const idle = (slots: number): Claimant => ({ slots, active: 0 });
const sum = (claimants: Claimant[]): number => claimants.reduce((total, { active }) => total + active, 0);

/** Claims for one of them until it gets no more. */
function fill(maxActive: number, claimants: Claimant[], index: number): void {
  const claimant = claimants[index] as Claimant;
  const others = claimants.filter((_, n) => n !== index);
  const room = roomUnderCap(maxActive, sum(claimants), claimant, others);
  claimant.active += Math.min(room, Math.max(0, claimant.slots - claimant.active));
}

describe('sharing a cap among sessions', () => {
  it.each([
    { what: 'all for one that is alone', maxActive: 4, active: 0, claimant: idle(10), others: [], room: 4 },
    { what: 'half for each of two', maxActive: 4, active: 0, claimant: idle(10), others: [idle(10)], room: 2 },
    { what: 'what the other cannot use', maxActive: 6, active: 0, claimant: idle(10), others: [idle(1)], room: 5 },
    { what: 'nothing is left for one without slots', maxActive: 6, active: 0, claimant: idle(10), others: [idle(0)], room: 6 },
    {
      what: 'half for each of two, whoever else only holds locks',
      maxActive: 6,
      active: 0,
      claimant: idle(10),
      others: [idle(10), idle(0)],
      room: 3,
    },
    {
      what: 'what the other has used is no longer left',
      maxActive: 4,
      active: 2,
      claimant: idle(10),
      others: [{ slots: 10, active: 2 }],
      room: 2,
    },
    { what: 'the odd one to whoever comes first', maxActive: 3, active: 0, claimant: idle(10), others: [idle(10)], room: 2 },
    { what: 'at least one to try for', maxActive: 2, active: 0, claimant: idle(1), others: [idle(1), idle(1)], room: 1 },
    { what: 'none when it is full', maxActive: 2, active: 2, claimant: idle(1), others: [{ slots: 1, active: 2 }], room: 0 },
    { what: 'none when it is over full', maxActive: 2, active: 5, claimant: idle(1), others: [{ slots: 9, active: 5 }], room: 0 },
    { what: 'what is left for one without slots', maxActive: 5, active: 0, claimant: idle(0), others: [idle(2)], room: 3 },
    { what: 'none under a cap of none', maxActive: 0, active: 0, claimant: idle(3), others: [], room: 0 },
  ])('$what', ({ maxActive, active, claimant, others, room }) => {
    expect(roomUnderCap(maxActive, active, claimant, others)).toBe(room);
  });

  const fleet = fc.record({
    maxActive: fc.integer({ min: 1, max: 20 }),
    slots: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 8 }),
    order: fc.infiniteStream(fc.nat()),
  });

  it('never exceeds the cap, and uses every place when all sessions have asked', () => {
    fc.assert(
      fc.property(fleet, ({ maxActive, slots, order }) => {
        const claimants = slots.map(idle);
        for (const at of order.take(40)) {
          fill(maxActive, claimants, at % claimants.length);
          expect(sum(claimants)).toBeLessThanOrEqual(maxActive);
        }
        claimants.forEach((_, index) => fill(maxActive, claimants, index));
        claimants.forEach((_, index) => fill(maxActive, claimants, index));
        expect(sum(claimants)).toBe(
          Math.min(
            maxActive,
            slots.reduce((total, one) => total + one, 0),
          ),
        );
      }),
      { seed: seedOfTest() },
    );
  });

  it('gives a job to every session that asks after each finish of the others, if there are enough places', () => {
    fc.assert(
      fc.property(fleet, fc.nat(), ({ maxActive, slots, order }, who) => {
        fc.pre(maxActive >= slots.length);
        const claimants = slots.map(idle);
        const late = who % claimants.length;
        const others = claimants.map((_, index) => index).filter((index) => index !== late);
        for (const index of others) fill(maxActive, claimants, index);
        // Each of the others finishes one and claims in the same step, in any order, before the late one asks.
        for (const at of order.take(20 * maxActive)) {
          const index = others[at % others.length];
          if (index === undefined) break;
          const busy = claimants[index] as Claimant;
          busy.active = Math.max(0, busy.active - 1);
          fill(maxActive, claimants, index);
          fill(maxActive, claimants, late);
          if ((claimants[late] as Claimant).active > 0) break;
        }
        fill(maxActive, claimants, late);
        expect((claimants[late] as Claimant).active).toBeGreaterThan(0);
      }),
      { seed: seedOfTest() },
    );
  });
});
