// bee-queue 2. Producers do not listen to events, as its manual advises for speed; stalled jobs are looked for, as it asks every
// application to do. Finished jobs are removed where asked.
import BeeQueue from 'bee-queue';

export async function open({ url, queue: name, options: { removed = false } = {} }) {
  const queue = new BeeQueue(name, { redis: { url }, isWorker: false, getEvents: false, storeJobs: false });
  await queue.ready();
  return {
    add: (data) => queue.createJob(data).save(),
    addBulk: (list) => queue.saveAll(list.map((data) => queue.createJob(data))),
    work: async ({ concurrency, lockMs = 5000 }, handle, onDone) => {
      const worker = new BeeQueue(name, {
        ...{ redis: { url }, getEvents: false, storeJobs: false, stallInterval: lockMs },
        removeOnSuccess: removed,
      });
      worker.on('succeeded', onDone);
      worker.on('error', (error) => console.error(error.message));
      worker.process(concurrency, (job) => handle(job.data));
      worker.checkStalledJobs(lockMs / 2, () => undefined);
      await worker.ready();
      return { stop: () => worker.close() };
    },
    close: () => queue.close(),
  };
}
