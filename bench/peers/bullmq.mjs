// BullMQ 6 with its default options, and finished jobs removed where asked, on Redis or on its PostgreSQL backend.
import { createPostgresBackend, Queue, Worker } from 'bullmq';

export async function open({ url, queue: name, options: { removed = false } = {} }) {
  const isPostgres = url.startsWith('postgres');
  const backend = isPostgres ? createPostgresBackend : undefined;
  const connection = isPostgres ? { connectionString: url, migrate: true } : { url, maxRetriesPerRequest: null };
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: removed } }, backend);
  await queue.waitUntilReady();
  return {
    add: (data) => queue.add('work', data),
    addBulk: (list) => queue.addBulk(list.map((data) => ({ name: 'work', data }))),
    // It passes the flags of this process on to threads, which refuse some of them.
    work: async ({ concurrency, lockMs, file, threads }, handle, onDone) => {
      const times = lockMs === undefined ? {} : { lockDuration: lockMs, stalledInterval: lockMs / 2, maxStalledCount: 5 };
      const worker = new Worker(
        name,
        file ?? ((job) => handle(job.data)),
        {
          connection,
          concurrency,
          ...(file === undefined ? {} : { useWorkerThreads: threads, workerThreadsOptions: { execArgv: [] } }),
          ...times,
        },
        backend,
      );
      worker.on('completed', onDone);
      worker.on('error', (error) => console.error(error.message));
      await worker.waitUntilReady();
      return { stop: () => worker.close() };
    },
    close: () => queue.close(),
  };
}
