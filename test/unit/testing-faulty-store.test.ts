import { beforeEach, describe, expect, it } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore, type NewJob } from '../../src/testing/index.js';
import { checkClock } from '../../src/testing/conformance/runner.js';

const JOB: NewJob = { name: 'work', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };

describe('FaultyStore', () => {
  let inner: MemoryStore;
  let faulty: FaultyStore;
  let seq = 0;

  const add = (queue = 'q') => faulty.add(queue, [JOB], { caller: 'p', seq: (seq += 1) });
  const waiting = async (queue = 'q') => (await inner.status(queue)).counts.waiting;
  /** Whether a promise is settled once everything that is under way has had its turn. */
  const isSettled = async (promise: Promise<unknown>): Promise<boolean> => {
    const pending = Symbol('pending');
    await new Promise(setImmediate);
    return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending;
  };

  beforeEach(async () => {
    inner = new MemoryStore();
    faulty = new FaultyStore(inner);
    await faulty.open();
  });

  it('passes everything on as long as it has no rule', async () => {
    expect(await add()).toEqual([{ id: '1', status: 'added' }]);
    expect(await waiting()).toBe(1);
    expect(faulty.capabilities).toEqual(inner.capabilities);
  });

  it('fails before the work: nothing is done, and the error may be retried', async () => {
    faulty.on('add', { fault: 'fail' });
    await expect(add()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(await waiting()).toBe(0);
  });

  it('drops the reply: the work is done, and the error may be retried', async () => {
    faulty.on('add', { fault: 'drop-reply' });
    await expect(add()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(await waiting()).toBe(1);
  });

  it('rejects with the error that it was given', async () => {
    faulty.on('add', { fault: 'fail', error: new HoldfastError('STORE_FULL', 'full') });
    await expect(add()).rejects.toMatchObject({ code: 'STORE_FULL', retryable: false });
  });

  it('holds the reply: the work is done, and the caller gets the reply on release', async () => {
    const rule = faulty.on('add', { fault: 'hold-reply' });
    const done = faulty.answered('add');
    const adding = add();
    await done;
    expect(await waiting()).toBe(1);
    expect(await isSettled(adding)).toBe(false);
    expect(rule.holding).toBe(1);
    rule.release();
    expect(await adding).toEqual([{ id: '1', status: 'added' }]);
  });

  it('hangs: nothing is done until the release', async () => {
    faulty.on('add', { fault: 'hang' });
    const called = faulty.called('add');
    const adding = add();
    await called;
    expect(await isSettled(adding)).toBe(false);
    expect(await waiting()).toBe(0);
    faulty.release('claim');
    expect(await isSettled(adding)).toBe(false);
    faulty.release('add');
    await adding;
    expect(await waiting()).toBe(1);
  });

  it('delays: the work is done later', async () => {
    faulty.on('add', { fault: 'delay', delayMs: 30 });
    const begun = performance.now();
    const adding = add();
    expect(await waiting()).toBe(0);
    await adding;
    expect(performance.now() - begun).toBeGreaterThan(25);
    expect(await waiting()).toBe(1);
  });

  it('applies a rule as often as `times` says, after as many calls as `after` says', async () => {
    const rule = faulty.on('add', { fault: 'fail', after: 1, times: 2 });
    const outcomes = [];
    for (let n = 0; n < 5; n += 1) {
      outcomes.push(
        await add().then(
          () => 'done',
          () => 'failed',
        ),
      );
    }
    expect(outcomes).toEqual(['done', 'failed', 'failed', 'done', 'done']);
    expect(rule.struck).toBe(2);
  });

  it('applies a rule only to the calls and verbs that it names', async () => {
    faulty.on('add', { fault: 'fail', when: (queue) => queue === 'unlucky' });
    await add('lucky');
    await expect(add('unlucky')).rejects.toThrow('add()');
    expect((await faulty.status('unlucky')).counts.waiting).toBe(0);
  });

  it('applies the newest rule first', async () => {
    faulty.on('add', { fault: 'fail' });
    faulty.on('add', { fault: 'drop-reply', times: 1 });
    await expect(add()).rejects.toThrow('dropped');
    await expect(add()).rejects.toThrow('nothing was done');
  });

  it('counts calls, and resolves past and future moments', async () => {
    expect(faulty.calls('add')).toBe(0);
    const next = faulty.called('add');
    const third = faulty.answered('add', 3);
    await add('a');
    await add('b');
    expect((await next).args[0]).toBe('a');
    expect((await faulty.called('add', 2)).args[0]).toBe('b');
    expect(await isSettled(third)).toBe(false);
    await add('c');
    expect((await third).reply).toEqual([{ id: '1', status: 'added' }]);
    expect(faulty.calls('add')).toBe(3);
    expect(await isSettled(faulty.called('add'))).toBe(false);
  });

  it('counts a call that failed before the work as called, but not answered', async () => {
    faulty.on('add', { fault: 'fail' });
    const answered = faulty.answered('add');
    await expect(add()).rejects.toThrow('add()');
    expect(faulty.calls('add')).toBe(1);
    expect(await isSettled(answered)).toBe(false);
  });

  it('counts an error of the store itself as answered', async () => {
    await inner.close();
    const answered = faulty.answered('add');
    await expect(add()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect((await answered).error).toMatchObject({ code: 'STORE_CLOSED' });
  });

  it('removes all rules and releases held calls with clear()', async () => {
    faulty.on('add', { fault: 'hang' });
    faulty.on('claim', { fault: 'fail' });
    const adding = add();
    faulty.clear();
    await adding;
    await add();
    expect((await faulty.claim('q', { session: 's', seq: 1, count: 1 })).sessionAlive).toBe(false);
    expect((await faulty.change('q', { lists: ['waiting'], limit: 10 }, { kind: 'remove' })).changed).toEqual(['1', '2']);
    expect(faulty.calls('change')).toBe(1);
  });

  it('removes a single rule', async () => {
    faulty.on('claim', { fault: 'fail' });
    faulty.on('add', { fault: 'fail' }).remove();
    await add();
    await expect(faulty.claim('q', { session: 's', seq: 1, count: 1 })).rejects.toThrow('claim()');
  });

  it('loses wake-ups on command', async () => {
    let woken = 0;
    const stop = faulty.watch('q', () => void (woken += 1));
    faulty.losesWakeUps = true;
    await add();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(woken).toBe(0);
    faulty.clear();
    await add();
    await expect.poll(() => woken).toBeGreaterThan(0);
    stop();
  });

  it('is hidden from threads by default, because they would bypass it', () => {
    const descriptor = { engine: 'module', module: 'm', export: 'e' } as const;
    const reachable = Object.assign(Object.create(inner) as MemoryStore, { describe: () => descriptor });
    expect(new FaultyStore(reachable).describe()).toBeUndefined();
    expect(new FaultyStore(reachable, { reachableFromThreads: true }).describe()).toEqual(descriptor);
  });
});

it.each([
  ['ad', { fault: 'fail' }, 'verb'],
  ['watch', { fault: 'fail' }, 'verb'],
  ['add', { fault: 'drop-replies' }, 'fault'],
  ['add', { fault: 'fail', tims: 1 }, 'tims'],
  ['add', { fault: 'fail', times: Number.NaN }, 'times'],
  ['add', { fault: 'delay', delayMs: -1 }, 'delayMs'],
])('a rule for %s with %j is refused', (verb, rule, option) => {
  const faulty = new FaultyStore(new MemoryStore());
  expect(() => faulty.on(verb as 'add', rule as { fault: 'fail' })).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', option }),
  );
});

it('a verb that no store has is refused where calls are counted or waited for', () => {
  const faulty = new FaultyStore(new MemoryStore());
  const refusal = expect.objectContaining({ code: 'INVALID_OPTION', option: 'verb' });
  expect(() => faulty.calls('ad' as 'add')).toThrow(refusal);
  expect(() => faulty.called('ad' as 'add')).toThrow(refusal);
  expect(() => faulty.answered('ad' as 'add')).toThrow(refusal);
});

it.each([
  [{ clock: 'manul' }, 'clock'],
  [{ unit: Number.NaN }, 'unit'],
  [{ unit: 0 }, 'unit'],
])('the conformance suite refuses %j', (options, option) => {
  expect(() => checkClock(options as { clock: 'manual' })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
});
