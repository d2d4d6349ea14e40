// bun-queue's document on distributed locks: singleton jobs. The same id again changes nothing, also while the job runs.
import assert from 'node:assert/strict';
import { Queue } from 'holdfast/bun-queue';

// ── the document ──
const maintenanceQueue = new Queue('maintenance', {
  distributedLock: true,
  horizontalScaling: {
    enabled: true,
    leaderElection: {
      heartbeatInterval: 5000,
      leaderTimeout: 15000,
    },
  },
});

// Add a unique maintenance job
await maintenanceQueue.add(
  { task: 'cleanup-old-sessions' },
  { jobId: 'daily-cleanup' }, // Same ID ensures only one job
);
// ── around it ──

let letGo = (): void => undefined;
const held = new Promise<void>((resolve) => {
  letGo = resolve;
});
const active = new Promise((resolve) => maintenanceQueue.once('jobActive', resolve));
const completed = new Promise((resolve) => maintenanceQueue.once('jobCompleted', resolve));
let runs = 0;
maintenanceQueue.process(async () => {
  runs += 1;
  await held;
});
await active;
const again = await maintenanceQueue.add({ task: 'something else' }, { jobId: 'daily-cleanup' });
console.log('already there:', again.duplicate, again.data);
letGo();
console.log('completed:', await completed);
assert.equal(runs, 1);
await maintenanceQueue.close();

// prints: already there: true { task: 'cleanup-old-sessions' }
// prints: completed: daily-cleanup
