import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Leader } from '../../src/lock/leader.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { sleep, until } from '../support/wait/until.js';
import { newSession } from './store-samples.js';
import { newGate } from '../support/wait/gate.js';
import { stopwatch } from '../support/wait/stopwatch.js';

interface Watched {
  leader: Leader;
  /** What it told, in order. */
  told: string[];
  terms: number[];
  errors: Error[];
}

let store: FaultyStore;
let opened: { close(): Promise<unknown> }[];

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  opened = [];
});
afterEach(async () => {
  store.clear();
  await Promise.all(opened.map((each) => each.close()));
});

function stand(options = {}): Watched {
  const leader = new Leader('mail', { connection: store, leaderTimeout: 600, heartbeatInterval: 100, ...options });
  opened.push(leader);
  const watched: Watched = { leader, told: [], terms: [], errors: [] };
  leader.on('leader', (term) => {
    watched.told.push('leader');
    watched.terms.push(term);
  });
  leader.on('follower', (reason) => void watched.told.push(`follower: ${reason}`));
  leader.on('error', (error) => void watched.errors.push(error));
  return watched;
}

test('has one leader, which hands over at once on close, with a greater term', async () => {
  const first = stand({ leaderTimeout: 60_000 });
  await first.leader.waitUntilReady();
  const second = stand({ leaderTimeout: 60_000 });
  await second.leader.waitUntilReady();
  expect(first.told).toEqual(['leader']);
  expect(first.leader).toMatchObject({ isLeader: true, term: first.terms[0] });
  expect(first.leader.signal.aborted).toBe(false);
  expect(second.told).toEqual(['follower: another instance leads']);
  expect(second.leader).toMatchObject({ isLeader: false, term: undefined });
  expect(second.leader.signal.aborted).toBe(true);
  const took = stopwatch();
  const { signal } = first.leader;
  await first.leader.close();
  expect(signal.aborted).toBe(true);
  await until('the second to lead', () => second.leader.isLeader);
  expect(took()).toBeLessThan(500);
  expect(second.terms[0]).toBeGreaterThan(first.terms[0] ?? Number.NaN);
  expect(first.told).toEqual(['leader', 'follower: it was closed']);
  expect(first.leader.isLeader).toBe(false);
});

test('steps down before its lease ends when it cannot renew, and no term has two leaders', async () => {
  const cut = stand({ leaderTimeout: 2000, heartbeatInterval: 200 });
  await cut.leader.waitUntilReady();
  const [first] = await store.sessions('mail');
  store.on('renew', { fault: 'fail', when: ([renewal]) => renewal?.id === first?.id });
  const took = stopwatch();
  const [lease] = await store.sessions('mail');
  const steppedDown = new Promise<number>((resolve) => cut.leader.once('follower', () => resolve(took())));
  expect(await steppedDown).toBeLessThan(lease?.expiresInMs ?? 0);
  expect(cut.leader.isLeader).toBe(false);
  await until('somebody to lead again', () => cut.leader.isLeader);
  expect(cut.terms[1]).toBeGreaterThan(cut.terms[0] ?? Number.NaN);
});

test('reads isLeader as false after a block, and emits follower before the read returns', async () => {
  const blocked = stand({ leaderTimeout: 300 });
  await blocked.leader.waitUntilReady();
  const { signal } = blocked.leader;
  for (const end = performance.now() + 400; performance.now() < end; );
  expect(blocked.told).toEqual(['leader']);
  expect(blocked.leader.isLeader).toBe(false);
  expect(blocked.told).toEqual(['leader', 'follower: the lease could not be renewed in time']);
  expect(signal.aborted).toBe(true);
});

test('elects another leader when the lease of a dead one ends', async () => {
  await store.openSession(newSession({ queue: 'mail', id: 'dead', durationMs: 1000, slots: 0 }));
  await store.acquire('mail', [{ name: 'holdfast:leader', token: 't', session: 'dead', keepPlaceMs: 0 }]);
  const took = stopwatch();
  const next = stand({ leaderTimeout: 1000, heartbeatInterval: 500 });
  await until('it to lead', () => next.leader.isLeader);
  expect(took()).toBeLessThan(1000 + 500);
  expect(next.told).toEqual(['follower: another instance leads', 'leader']);
});

test('lets candidates ask once per heartbeat', async () => {
  const all = Array.from({ length: 5 }, () => stand({ leaderTimeout: 3000, heartbeatInterval: 500 }));
  await Promise.all(all.map(({ leader }) => leader.waitUntilReady()));
  await sleep(100);
  const before = store.calls('acquire');
  const start = performance.now();
  await sleep(1500);
  const beats = Math.ceil((performance.now() - start) / 500);
  expect(store.calls('acquire') - before).toBeLessThanOrEqual(4 * beats);
});

test('reports a store that fails, and retries', async () => {
  store.on('acquire', { fault: 'fail', times: 3 });
  const { leader, errors } = stand();
  await leader.waitUntilReady();
  expect(leader.isLeader).toBe(true);
  expect(errors.length).toBeGreaterThan(0);
});

test('checks the options of a leader', () => {
  for (const options of [
    { leaderTimeout: 0 },
    { heartbeatInterval: 15_000 },
    { leaderTimeout: Number.NaN },
    { instanceId: '' },
  ]) {
    expect(() => new Leader('mail', { connection: store, ...options })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: Object.keys(options)[0] }),
    );
  }
});

describe('run', () => {
  test('runs the work in each term, with its signal and term, and close waits for it', async () => {
    const { leader, terms } = stand();
    const runs: number[] = [];
    const [started, end] = [newGate(), newGate()];
    const running = leader.run(async (signal, term) => {
      runs.push(term);
      started.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await end.opened;
    });
    await started.opened;
    const next = stand({ leaderTimeout: 60_000 });
    await next.leader.waitUntilReady();
    const closing = leader.close();
    await sleep(50);
    // Its work has not ended, so nobody else leads.
    expect(next.leader.isLeader).toBe(false);
    end.open();
    await closing;
    await running;
    expect(runs).toEqual(terms);
    await until('the other to lead', () => next.leader.isLeader);
  });

  test('does not start work in a term that a listener has ended', async () => {
    const { leader, told } = stand();
    leader.on('leader', () => void leader.close());
    let runs = 0;
    await leader.run(() => {
      runs += 1;
    });
    expect([runs, told]).toEqual([0, ['leader', 'follower: it was closed']]);
  });

  test('gives up the term when the work throws, reports it, and tries again later', async () => {
    const { leader, told, errors } = stand();
    let runs = 0;
    void leader.run(() => {
      runs += 1;
      if (runs === 1) throw new Error('broken');
    });
    await until('the second run', () => runs === 2);
    expect(errors.map(({ message }) => message)).toEqual(['broken']);
    expect(told).toEqual(['leader', 'follower: its work failed', 'leader']);
    await expect(leader.run(() => undefined)).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
  });
});

test('lets a queue stand for election, and emits leader events on it', async () => {
  const told: unknown[][] = [];
  const queue = new Queue('mail', { connection: store, leaderElection: { leaderTimeout: 1000 }, instanceId: 'a:b' });
  opened.push(queue);
  queue.on('leader', (term) => void told.push(['leader', term]));
  queue.on('follower', (reason) => void told.push(['follower', reason]));
  await queue.leader?.waitUntilReady();
  expect(told).toEqual([['leader', queue.leader?.term]]);
  expect(await queue.getInstances()).toMatchObject([{ id: 'a:b', pid: process.pid, leader: true, workers: 0 }]);
  await queue.close();
  expect(told.at(-1)).toEqual(['follower', 'it was closed']);
  expect(() => new Queue('mail', { connection: store, leaderElection: 'yes' as never })).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION' }),
  );
});
