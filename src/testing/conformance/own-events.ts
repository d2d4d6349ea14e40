// Facet: events that users record themselves.
import assert from 'node:assert/strict';
import { nth } from './expect.js';
import type { Test } from './suite.js';
import { wakes } from './waking.js';

export function ownEvents(test: Test): void {
  test('write records an event of a user in the order of the log, with its args as they are', async (scene) => {
    const { store, queue } = scene;
    const last = await scene.lastEvent();
    const args = JSON.stringify({ text: 'é "quoted" \\ \n', id: 'x', name: 'y', count: 3, nested: { list: [1, null] } });
    await scene.add({ id: 'job' });
    const replies = await store.write(queue, [
      { kind: 'event', name: 'paid', args },
      { kind: 'data', jobId: 'job', data: '2' },
      { kind: 'progress', jobId: 'job', progress: '5' },
      { kind: 'event', name: 'with:odd – name', args: '{}' },
    ]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['done', 'done', 'done', 'done'],
    );
    assert.equal((await scene.job('job')).data, '2');
    const recorded = await scene.events(last);
    assert.deepEqual(
      recorded.map(({ name }) => name),
      ['added', 'waiting', 'paid', 'progress', 'with:odd – name'],
    );
    const { id, ...paid } = nth(recorded, 2);
    assert.deepEqual(paid, { name: 'paid', args });
    assert.equal(id > last, true);
  });

  test('write records an event of a user in a queue that was never used', async (scene) => {
    await scene.store.write(scene.queue, [{ kind: 'event', name: 'first', args: '[]' }]);
    assert.deepEqual(
      (await scene.events()).map(({ name, args }) => [name, args]),
      [['first', '[]']],
    );
  });

  test('a write to a missing job leaves the events beside it alone', async (scene) => {
    const replies = await scene.store.write(scene.queue, [
      { kind: 'event', name: 'one', args: '1' },
      { kind: 'data', jobId: 'gone', data: '2' },
      { kind: 'event', name: 'two', args: '2' },
    ]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['done', 'missing', 'done'],
    );
    assert.deepEqual(
      (await scene.events()).map(({ name }) => name),
      ['one', 'two'],
    );
  });

  test.needs('waking')('an event of a user wakes the watchers of the event log', async (scene) => {
    const ping = () => scene.store.write(scene.queue, [{ kind: 'event', name: 'ping', args: '{}' }]);
    await wakes(scene, ping, 'events');
  });
}
