// Bull's document on locks: lock configuration.
import assert from 'node:assert/strict';
import Queue from 'holdfast/bull';

// ── the document ──
const queue = new Queue('myqueue', {
  settings: {
    lockDuration: 30000, // Lock expires after 30 seconds
    lockRenewTime: 15000, // Auto-renew lock every 15 seconds
  },
});
// ── around it ──

const job = await queue.add({});
await job.takeLock();
const { endsInMs } = await queue.core.getLock(job.id);
assert.ok(endsInMs > 25_000 && endsInMs < 30_100, `it ends in ${endsInMs} ms`);
console.log('a lock of 30 seconds');
await job.releaseLock();
assert.throws(() => new Queue('wrong', { settings: { lockDuration: 1000, lockRenewTime: 1000 } }), /lockRenewTime/);
console.log('a renew time that is not below it is refused');
await queue.close();

// prints: a lock of 30 seconds
// prints: a renew time that is not below it is refused
