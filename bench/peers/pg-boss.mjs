// pg-boss 12 with what it has for speed: LISTEN/NOTIFY, batches as large as the concurrency, and fetching on without a pause while
// batches are full. It tells of no completed job, so one counts when its handler has returned.
import { PgBoss } from 'pg-boss';

export async function open({ url, queue: name }) {
  const boss = new PgBoss({
    connectionString: url,
    useListenNotify: true,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
  });
  boss.on('error', (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue(name, { notify: true });
  return {
    add: (data) => boss.send(name, data),
    addBulk: (list) =>
      boss.insert(
        name,
        list.map((data) => ({ data })),
      ),
    work: async ({ concurrency, lockMs }, handle, onDone) => {
      if (lockMs !== undefined) await boss.updateQueue(name, { expireInSeconds: Math.ceil(lockMs / 1000), retryLimit: 5 });
      const speed = { batchSize: concurrency, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true, burstWhenReadyExceeds: 1 };
      await boss.work(name, speed, async (jobs) => {
        await Promise.all(
          jobs.map(async (job) => {
            await handle(job.data);
            onDone();
          }),
        );
      });
      return { stop: () => boss.offWork(name) };
    },
    close: () => boss.stop({ graceful: false }),
  };
}
