// A unit test without a server, a file or a wait: on the store `sync:`, `add` answers when the job has been run.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue, Worker } from 'holdfast';

// The code under test.
function startMailer(connection: string, send: (to: string) => Promise<void>) {
  const queue = new Queue('mail', { connection });
  const worker = new Worker('mail', (job) => send(job.data.to), { connection });
  return {
    ready: () => worker.waitUntilReady(),
    welcome: (to: string) => queue.add('welcome', { to }, { jobId: `welcome-${to}` }),
    close: async () => {
      await worker.close();
      await queue.close();
    },
  };
}

test('everybody is welcomed once', async () => {
  const sent: string[] = [];
  const mailer = startMailer('sync:', async (to) => void sent.push(to));
  await mailer.ready();

  const first = await mailer.welcome('ada@example.com');
  const second = await mailer.welcome('ada@example.com');

  assert.deepEqual(sent, ['ada@example.com']);
  assert.equal(first.duplicate, false);
  assert.equal(second.duplicate, true);
  assert.equal(await first.getState(), 'completed');
  await mailer.close();
});

test('what cannot be sent fails with the reason', async () => {
  const mailer = startMailer('sync:', async () => Promise.reject(new Error('no such host')));
  await mailer.ready();

  const job = await mailer.welcome('nobody@nowhere');

  assert.equal(await job.getState(), 'failed');
  await mailer.close();
});

// prints: everybody is welcomed once
// prints: what cannot be sent fails with the reason
// prints: pass 2
