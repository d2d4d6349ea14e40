// The memory store's own data structures, held against the plainest thing that does the same.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVENTS_KEPT } from '../../../src/store/contract/index.js';
import { CallMemory } from '../../../src/store/memory/state/callers.js';
import { EventLog } from '../../../src/store/memory/events.js';
import { Heap } from '../../../src/store/memory/state/heap.js';
import { oldestOf } from '../../../src/runtime/linked-list.js';
import { ClaimLimits } from '../../../src/store/memory/state/rate-limit.js';
import { Waiting } from '../../../src/store/memory/state/waiting.js';
import { Wake } from '../../../src/store/memory/wake.js';
import { seedOfTest } from '../../support/run/seed.js';

class Item {
  before: Item | undefined;
  after: Item | undefined;
  slot = -1;
  turn = 0;

  constructor(
    readonly order: number,
    public at = 0,
    public priority = 0,
  ) {}
}

const steps = fc.array(
  fc.record({ at: fc.nat(20), priority: fc.nat(3), front: fc.boolean(), remove: fc.boolean(), which: fc.nat() }),
  { maxLength: 80, size: 'max' },
);

describe('the heap of the memory store', () => {
  test('returns items by time, then first in first out, whatever is removed from its middle', () => {
    fc.assert(
      fc.property(steps, (moves) => {
        const heap = new Heap<Item>();
        const model: Item[] = [];
        const removed: Item[] = [];
        for (const [order, { at, remove, which }] of moves.entries()) {
          if (remove && model.length > 0) {
            const [item] = model.splice(which % model.length, 1) as [Item];
            heap.remove(item);
            removed.push(item);
          } else {
            const item = new Item(order, at);
            model.push(item);
            heap.push(item);
          }
          model.sort((a, b) => a.at - b.at || a.order - b.order);
          expect(heap.first).toBe(model[0]);
          expect(heap.size).toBe(model.length);
        }
        expect(heap.sorted()).toEqual(model);
        expect(removed.every(({ slot }) => slot === -1)).toBe(true);
        while (heap.first !== undefined) {
          expect(heap.first).toBe(model.shift());
          heap.remove(heap.first);
        }
        expect(model).toEqual([]);
      }),
      { seed: seedOfTest() },
    );
  });
});

describe('the waiting jobs of the memory store', () => {
  test('are claimed by priority, front to back, whatever is put to the front or removed from the middle', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (moves, limit) => {
        const waiting = new Waiting<Item>();
        const model: Item[][] = [[], [], [], []];
        for (const [order, { priority, front, remove, which }] of moves.entries()) {
          const all = model.flat();
          if (remove && all.length > 0) {
            const item = all[which % all.length] as Item;
            const list = model[item.priority] as Item[];
            list.splice(list.indexOf(item), 1);
            waiting.remove(item);
          } else {
            const item = new Item(order, 0, priority);
            model[priority]?.[front ? 'unshift' : 'push'](item);
            waiting.add(item, front);
          }
          const now = model.flat();
          expect(waiting.size).toBe(now.length);
          expect(waiting.first).toBe(now[0]);
          const isOdd = (item: Item) => item.order % 2 === 1;
          for (const prioritized of [false, true]) {
            const old = now.filter((item) => item.priority > 0 === prioritized && isOdd(item));
            const found = oldestOf(waiting.candidates(prioritized, limit, isOdd), limit);
            expect(found).toEqual(old.sort((a, b) => a.order - b.order).slice(0, limit));
          }
        }
        expect([...waiting.plain.forward(), ...waiting.prioritized(true)]).toEqual(model.flat());
        expect([...waiting.prioritized(false), ...waiting.plain.backward()]).toEqual(model.flat().reverse());
      }),
      { seed: seedOfTest() },
    );
  });

  test('find their oldest without sorting all', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 400 }), fc.integer({ min: 0, max: 10 }), (orders, limit) => {
        const picked = oldestOf(
          orders.map((order) => ({ order })),
          limit,
        );
        expect(picked.map(({ order }) => order)).toEqual(orders.sort((a, b) => a - b).slice(0, limit));
      }),
      { seed: seedOfTest() },
    );
  });
});

describe('the event log of the memory store', () => {
  function filled(count: number): EventLog {
    const log = new EventLog();
    for (let n = 1; n <= count; n++) log.record('added', `job-${n}`, { jobName: `n${n}` });
    return log;
  }

  test('keeps the newest events with their ids when its ring wraps around', () => {
    const log = filled(2 * EVENTS_KEPT + 7);
    const { events, last } = log.read(0, Number.POSITIVE_INFINITY);
    expect(events).toHaveLength(EVENTS_KEPT);
    expect(events[0]).toEqual({
      id: EVENTS_KEPT + 8,
      name: 'added',
      jobId: `job-${EVENTS_KEPT + 8}`,
      jobName: `n${EVENTS_KEPT + 8}`,
    });
    expect(events.at(-1)?.id).toBe(2 * EVENTS_KEPT + 7);
    expect(last).toBe(2 * EVENTS_KEPT + 7);
  });

  test('is read in pages', () => {
    const log = filled(10);
    const first = log.read(0, 4);
    expect([first.events.map(({ id }) => id), first.last]).toEqual([[1, 2, 3, 4], 4]);
    const second = log.read(first.last, 100);
    expect([second.events.map(({ id }) => id), second.last]).toEqual([[5, 6, 7, 8, 9, 10], 10]);
    expect(log.read(10, 100)).toEqual({ events: [], last: 10 });
    expect(log.read(undefined, 100)).toEqual({ events: [], last: 10 });
  });

  test('moves a reader that is ahead of it back to its end', () => {
    expect(filled(3).read(99, 10)).toEqual({ events: [], last: 3 });
  });

  test('trims, returns how many it removed, and goes on counting', () => {
    const log = filled(10);
    expect([log.trim(4), log.trim(4), log.trim(100)]).toEqual([6, 0, 0]);
    log.record('drained');
    expect(log.read(0, 100).events.map(({ id }) => id)).toEqual([7, 8, 9, 10, 11]);
    expect(log.read(10, 1).events).toEqual([{ id: 11, name: 'drained' }]);
    expect(log.trim(0)).toBe(5);
    expect(log.read(0, 100)).toEqual({ events: [], last: 11, missed: 11 });
  });

  test('returns copies', () => {
    const log = filled(1);
    const [event] = log.read(0, 1).events;
    Object.assign(event as object, { jobName: 'changed' });
    expect(log.read(0, 1).events[0]?.['jobName']).toBe('n1');
  });
});

describe('the remembered calls of the memory store', () => {
  const MINUTE = 60_000;
  const nobody = (): boolean => false;

  test('forget a caller after ten minutes of silence, not sooner', () => {
    const memory = new CallMemory<string>();
    memory.remember({ caller: 'a', seq: 1 }, 'first', 0, nobody);
    memory.remember({ caller: 'b', seq: 1 }, 'other', 10 * MINUTE, nobody);
    expect(memory.recall({ caller: 'a', seq: 1 })).toBe('first');
    memory.remember({ caller: 'b', seq: 2 }, 'other', 10 * MINUTE + 1, nobody);
    expect(memory.recall({ caller: 'a', seq: 1 })).toBeUndefined();
  });

  test('keep a caller that goes on calling', () => {
    const memory = new CallMemory<string>();
    memory.remember({ caller: 'a', seq: 1 }, 'first', 0, nobody);
    memory.remember({ caller: 'a', seq: 2 }, 'second', 9 * MINUTE, nobody);
    memory.remember({ caller: 'b', seq: 1 }, 'other', 15 * MINUTE, nobody);
    expect(memory.recall({ caller: 'a', seq: 2 })).toBe('second');
  });

  test('forget other callers beside one that goes on calling', () => {
    const memory = new CallMemory<string>();
    memory.remember({ caller: 'a', seq: 1 }, 'first', 0, nobody);
    memory.remember({ caller: 'silent', seq: 1 }, 'old', 0, nobody);
    memory.remember({ caller: 'a', seq: 2 }, 'second', 9 * MINUTE, nobody);
    memory.remember({ caller: 'a', seq: 3 }, 'third', 15 * MINUTE, nobody);
    expect(memory.recall({ caller: 'silent', seq: 1 })).toBeUndefined();
  });

  test('keep the call of a lasting caller', () => {
    const memory = new CallMemory<string>();
    memory.remember({ caller: 'worker', seq: 7 }, 'kept', 0, nobody);
    for (let minute = 8; minute < 60; minute += 8) {
      memory.remember({ caller: 'b', seq: minute }, 'other', minute * MINUTE, (caller) => caller === 'worker');
    }
    expect(memory.recall({ caller: 'worker', seq: 7 })).toBe('kept');
  });

  test('refuse a call with an old number', () => {
    const memory = new CallMemory<string>();
    memory.remember({ caller: 'a', seq: 5 }, 'fifth', 0, nobody);
    expect(() => memory.recall({ caller: 'a', seq: 4 })).toThrow(expect.objectContaining({ code: 'STORE_FAILED' }));
    expect(memory.recall({ caller: 'a', seq: 6 })).toBeUndefined();
  });
});

describe('the rate limit of the memory store', () => {
  const limit = { max: 3, durationMs: 100 };

  test('opens its window with the first claim, not with the first check', () => {
    const rate = new ClaimLimits();
    expect(rate.room(limit, 0)).toBe(3);
    rate.use(0, limit, 0);
    rate.use(3, limit, 60);
    expect([rate.room(limit, 159), rate.remainingMs(limit, 159), rate.visibleMs(159)]).toEqual([0, 1, 1]);
    expect([rate.room(limit, 160), rate.remainingMs(limit, 160), rate.visibleMs(160)]).toEqual([3, 0, 0]);
  });

  test('counts claims without a limit in an open window, and does not block them', () => {
    const rate = new ClaimLimits();
    rate.use(1, limit, 0);
    rate.use(2, undefined, 10);
    expect([rate.room(limit, 20), rate.room(undefined, 20)]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  test('blocks all claims while it is set by hand, and ends the window when it is lifted', () => {
    const rate = new ClaimLimits();
    rate.use(3, limit, 0);
    rate.block(50, 0);
    expect([rate.room(undefined, 49), rate.remainingMs(undefined, 49), rate.room(undefined, 50)]).toEqual([
      0,
      1,
      Number.POSITIVE_INFINITY,
    ]);
    rate.block(0, 60);
    expect([rate.room(limit, 60), rate.visibleMs(60)]).toEqual([3, 0]);
  });
});

describe('a wake-up of the memory store', () => {
  test('comes after the change, once for many changes, and not after unwatch', async () => {
    const wake = new Wake();
    const calls: string[] = [];
    const stopped = wake.watch(() => calls.push('stopped'));
    wake.watch(() => {
      calls.push('first');
      stopped();
    });
    wake.watch(() => calls.push('second'));
    wake.signal();
    wake.signal();
    stopped();
    expect(calls).toEqual([]);
    await Promise.resolve();
    expect(calls).toEqual(['first', 'second']);
  });

  test('calls a listener that watches again at the next change, not in a loop', async () => {
    const wake = new Wake();
    let calls = 0;
    const again = (): void => {
      stop();
      calls++;
      stop = wake.watch(again);
    };
    let stop = wake.watch(again);
    wake.signal();
    await Promise.resolve();
    expect(calls).toBe(1);
    wake.signal();
    await Promise.resolve();
    expect(calls).toBe(2);
  });
});
