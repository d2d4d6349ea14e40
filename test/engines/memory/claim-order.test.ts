// The waiting jobs of the memory store, held against a plain array of them.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClaimOrder } from '../../../src/store/memory/state/claim-order.js';
import { seedOfTest } from '../../support/run/seed.js';

class Item {
  before: Item | undefined;
  after: Item | undefined;
  place = 0;
  readonly group = undefined;

  constructor(
    readonly order: number,
    public priority: number,
    readonly key: string | undefined,
  ) {}
}

const moves = fc.array(
  fc.record({
    what: fc.constantFrom('add', 'add', 'add', 'remove', 'claim', 'free'),
    priority: fc.nat(2),
    key: fc.constantFrom(undefined, 'k', 'l', 'm'),
    front: fc.boolean(),
    which: fc.nat(),
  }),
  { maxLength: 80, size: 'max' },
);

/** In claim order, those that wait for their key last. */
function inOrder(waiting: Item[], taken: Set<string>): { claimable: Item[]; behind: Item[] } {
  const sorted = waiting.toSorted((a, b) => a.priority - b.priority || a.place - b.place);
  const seen = new Set(taken);
  const claimable: Item[] = [];
  const behind: Item[] = [];
  for (const item of sorted) {
    const free = item.key === undefined || !seen.has(item.key);
    (free ? claimable : behind).push(item);
    if (item.key !== undefined) seen.add(item.key);
  }
  return { claimable, behind };
}

test('only the first job of a free key is claimed, while lists and counts show all jobs', () => {
  fc.assert(
    fc.property(moves, (steps) => {
      const order = new ClaimOrder<Item>();
      const waiting: Item[] = [];
      const taken = new Set<string>();
      for (const [number, { what, priority, key, front, which }] of steps.entries()) {
        if (what === 'add') {
          const item = new Item(number, priority, key);
          order.add(item, front);
          waiting.push(item);
        } else if (what === 'free') {
          order.setTaken(new Item(number, priority, key), false);
          if (key !== undefined) taken.delete(key);
        } else {
          const item = what === 'claim' ? order.first : waiting[which % Math.max(1, waiting.length)];
          if (item === undefined) continue;
          order.remove(item);
          waiting.splice(waiting.indexOf(item), 1);
          if (what === 'claim') order.setTaken(item, true);
          if (what === 'claim' && item.key !== undefined) taken.add(item.key);
        }
        const { claimable, behind } = inOrder(waiting, taken);
        expect(order.first).toBe(claimable[0]);
        expect(order.size).toBe(waiting.length);
        expect(order.plainSize).toBe(waiting.filter((item) => item.priority === 0).length);
        for (const prioritized of [false, true]) {
          const listed = [...claimable, ...behind].filter((item) => item.priority > 0 === prioritized);
          expect([...order.inOrder(prioritized, true)]).toEqual(listed);
          expect([...order.inOrder(prioritized, false)]).toEqual(listed.reverse());
        }
        const byAge = waiting.toSorted((a, b) => a.order - b.order);
        for (const prioritized of [false, true]) {
          const old = byAge.filter(({ priority, order: age }) => priority > 0 === prioritized && age % 3 > 0);
          expect(order.oldest(prioritized, 3, ({ order: age }) => age % 3 > 0)).toEqual(old.slice(0, 3));
        }
        for (const one of ['k', 'l', 'm']) expect(order.isFree(new Item(0, 0, one))).toBe(!taken.has(one));
      }
    }),
    { seed: seedOfTest() },
  );
});
