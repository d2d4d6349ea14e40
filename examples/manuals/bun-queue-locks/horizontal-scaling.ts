// bun-queue's document on distributed locks: horizontal scaling. At most 4 × 10 jobs run at once in this instance.
import { Queue } from 'holdfast/bun-queue';

// ── the document ──
const queue = new Queue('tasks', {
  distributedLock: true,
  horizontalScaling: {
    enabled: true,
    instanceId: process.env['INSTANCE_ID'] || 'instance-1',
    maxWorkersPerInstance: 4,
    jobsPerWorker: 10,
    leaderElection: {
      heartbeatInterval: 5000, // Leader heartbeat every 5s
      leaderTimeout: 15000, // Leader considered dead after 15s
    },
    workCoordination: {
      pollInterval: 1000, // Poll for new work every 1s
      keyPrefix: 'myapp:queue',
    },
  },
});
// ── around it ──

let running = 0;
let most = 0;
const done = new Promise<void>((resolve) => {
  let left = 60;
  queue.on('jobCompleted', () => void ((left -= 1) === 0 && resolve()));
});
for (let n = 0; n < 60; n++) await queue.add({ n });
queue.process(100, async () => {
  most = Math.max(most, (running += 1));
  await new Promise((resolve) => setTimeout(resolve, 50));
  running -= 1;
});
await queue.waitUntilReady();
const [instance] = await queue.getInstances();
console.log(instance?.id, 'slots:', instance?.slots, 'leader:', instance?.leader);
await done;
console.log('at once:', most);
await queue.close();

// prints: instance-1 slots: 40 leader: true
// prints: at once: 40
