// The discussion of a heartbeat for @boringnode/queue: only the owner renews. A slow worker whose job was recovered and is run by another can
// neither renew the new owner's lock nor finish the job, and a late heartbeat resurrects nothing.
import assert from 'node:assert/strict';
import { type Job, openStore, Queue, Worker } from 'holdfast';

const queue = new Queue('owned');
const store = await openStore();
await queue.add('job', {});

const slow = new Worker('owned', null, { lockDuration: 100, skipStalledCheck: true });
const first = (await slow.getNextJob()) as Job;
// Its lock lapses, and the job is recovered.
while ((await store.sweep('owned', 10)).stalled.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
console.log('a late renewal of a recovered job:', await first.extendLock(5000));

const quick = new Worker('owned', null, { lockDuration: 30_000 });
const second = (await quick.getNextJob()) as Job;
const before = await queue.getLock(second.id);
console.log('a renewal of somebody else’s lock:', await first.extendLock(60_000));
await assert.rejects(first.moveToCompleted('stale', undefined, false), { code: 'LOCK_LOST' });
const after = await queue.getLock(second.id);
assert.equal(after?.fence, before?.fence);
assert.ok((after?.endsInMs ?? 0) < 30_100, 'the lock of the new owner is as it was');
console.log('a renewal by its owner:', await second.extendLock(60_000));
await second.moveToCompleted('by its owner', undefined, false);
console.log('result:', (await queue.getJob(second.id))?.returnvalue);

await slow.close();
await quick.close();
await store.close();
await queue.close();

// prints: a late renewal of a recovered job: 0
// prints: a renewal of somebody else’s lock: 0
// prints: a renewal by its owner: 1
// prints: result: by its owner
