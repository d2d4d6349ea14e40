// Bull 4 with its default options, and finished jobs removed where asked.
import Bull from 'bull';

export async function open({ url, queue: name, options: { removed = false } = {} }) {
  const queue = new Bull(name, url, { defaultJobOptions: { removeOnComplete: removed } });
  await queue.isReady();
  const workers = [];
  return {
    add: (data) => queue.add(data),
    addBulk: (list) => queue.addBulk(list.map((data) => ({ data }))),
    work: async ({ concurrency, lockMs }, handle, onDone) => {
      const settings =
        lockMs === undefined
          ? {}
          : { lockDuration: lockMs, lockRenewTime: lockMs / 2, stalledInterval: lockMs / 2, maxStalledCount: 5 };
      const worker = new Bull(name, url, { settings });
      workers.push(worker);
      worker.on('completed', onDone);
      worker.on('error', (error) => console.error(error.message));
      // It settles when the queue is closed.
      worker.process(concurrency, (job) => handle(job.data)).catch(() => undefined);
      await worker.isReady();
      return { stop: () => worker.close() };
    },
    close: () => queue.close(),
  };
}
