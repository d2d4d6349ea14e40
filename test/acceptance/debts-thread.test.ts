// The debt of a schedule whose worker died reaches a worker that claims nothing, because all its slots are taken: its lock thread probes.
import { randomUUID } from 'node:crypto';
import { BroadcastChannel } from 'node:worker_threads';
import type { Store } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { work } from '../support/scenes/scene.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';
import { open } from './fixtures/owing-connection.mjs';

const job = { name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };

/** A store with a worker whose only slot is taken, and with a schedule that is owing. */
async function owing(undone: boolean): Promise<{ store: Store; probes: () => number }> {
  const name = randomUUID();
  const channel = new BroadcastChannel(name);
  let probes = 0;
  channel.onmessage = () => void (probes += 1);
  onTestFinished(() => channel.close());
  const store = (await open({ channel: name, undone })) as Store;
  onTestFinished(() => store.close());
  await store.add('work', [job], { caller: 'p', seq: 1 });
  const gate = newGate();
  const { log } = work({ connection: store }, () => gate.opened, { drainDelay: 600 });
  await log.moment('active');
  // The lock thread takes over. A probe of the event loop could not see the debt.
  await until('a probe', () => probes > 0);
  const at = Date.now();
  const spec = JSON.stringify({ name: 'j', data: '{}', opts: {}, timing: { every: 60_000, catchUp: 'one' } });
  const next = { at, dueInMs: 0, count: 1, job: { ...job, id: `repeat:s:${at}` } };
  await store.schedule('work', [{ kind: 'put', id: 's', version: 0, spec, serial: false, next }]);
  const owner = { host: 'gone', pid: 1, name: 'gone', instance: 'gone' };
  await store.openSession({ queue: 'work', id: 'gone', owner, durationMs: 1e6, maxStalls: 1, slots: 1 });
  const { jobs } = await store.claim('work', { session: 'gone', seq: 1, count: 1 });
  expect(jobs[0]?.debt?.state).toBe('owing');
  probes = 0;
  return { store, probes: () => probes };
}

async function stateOf(store: Store): Promise<string | undefined> {
  return (await store.status('work', { schedules: { ids: ['s'] } })).schedules?.records[0]?.state;
}

test('a fully busy worker clears the debt of a dead one with the next probe of its lock thread', async () => {
  const { store, probes } = await owing(true);
  await until('the next job', async () => (await stateOf(store)) === 'running');
  expect(probes()).toBeLessThan(5);
});

test('without word of the probe, the debt stays', async () => {
  const { store, probes } = await owing(false);
  await until('two probes', () => probes() >= 2);
  expect(await stateOf(store)).toBe('owing');
});
