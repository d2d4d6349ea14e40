// The document on BullMQ's LockManager for Elixir: start_link, track_job, get_active_job_count, get_tracked_job_ids, tracked?, untrack_job and
// stop, with the names that they have in TypeScript. Times are divided by 20.
import assert from 'node:assert/strict';
import { LockManager, openStore, Queue, Worker } from 'holdfast';

const queue = new Queue('tracked');
const worker = new Worker('tracked', null, { lockDuration: 1500 });
await queue.addBulk(['a', 'b', 'c'].map((jobId) => ({ name: 'job', data: {}, opts: { jobId } })));
const renewals: string[][] = [];
let renewedTwice = (): void => undefined;
const twice = new Promise<void>((resolve) => {
  renewedTwice = resolve;
});
let failed: (jobIds: string[]) => void = () => undefined;
const lost = new Promise<string[]>((resolve) => {
  failed = resolve;
});

// ── the document ──
const locks = new LockManager(worker, {
  lockDuration: 1500, // default: 30000
  lockRenewTime: 400, // default: lock_duration / 2
  onLockRenewalFailed: (jobIds) => failed(jobIds),
  onLocksRenewed: ({ jobIds }) => {
    if (renewals.push(jobIds) === 2) renewedTwice();
  },
});
locks.start();
// ── around it ──

// A manager keeps no process alive by itself: the work does.
const working = setInterval(() => undefined, 1000);
const [a, b, c] = [await worker.getNextJob(), await worker.getNextJob(), await worker.getNextJob()];
for (const job of [a, b, c]) locks.trackJob(job?.id ?? '', job?.token ?? '');
console.log('tracked:', locks.getActiveJobCount());
locks.untrackJob('c');
await c?.moveToCompleted('done', undefined, false);
console.log('tracked:', locks.getTrackedJobIds().join(), 'c among them:', locks.isTracked('c'));

await twice;
assert.ok(
  renewals.every((jobIds) => jobIds.length <= 2 || jobIds.includes('c')),
  'all locks in one call',
);
console.log('renewed together');

const store = await openStore();
await store.change('tracked', ['a'], { kind: 'revoke', reason: 'taken away' });
console.log('lost:', (await lost).join(), '- still tracked:', locks.getTrackedJobIds().join());
await b?.moveToCompleted('done', undefined, false);
locks.untrackJob('b');

clearInterval(working);
await locks.close();
await locks.close();
await store.close();
await worker.close();
await queue.close();

// prints: tracked: 3
// prints: tracked: a,b c among them: false
// prints: renewed together
// prints: lost: a - still tracked: b
