// Holdfast with its default options: the lock thread on, SQLite and PostgreSQL synced, finished jobs kept, or removed where asked.
import { openStore, Queue, Worker } from 'holdfast';

/**
 * `options`: of the worker; `groups`: the number of groups among which jobs are dealt out in turn; `removed`: finished jobs are
 * removed.
 */
export async function open({ url, queue: name, options: { groups = 0, removed = false, ...options } = {} }) {
  for (const option of Object.keys(options)) await refuseUnknown(option);
  let added = 0;
  const opts = () => (groups === 0 ? {} : { opts: { group: { id: `group ${(added += 1) % groups}` } } });
  // Only the process that made it reaches a store in memory.
  const connection = url === 'memory:' ? await openStore(url) : url;
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: removed } });
  await queue.waitUntilReady();
  return {
    add: (data) => queue.add('work', data, opts().opts),
    addBulk: (list) => queue.addBulk(list.map((data) => ({ name: 'work', data, ...opts() }))),
    work: async ({ concurrency, lockMs, file, threads }, handle, onDone) => {
      const times = lockMs === undefined ? {} : { lockDuration: lockMs, lockRenewTime: lockMs / 2, stalledInterval: lockMs / 2 };
      const worker = new Worker(name, file ?? ((job) => handle(job.data)), {
        connection,
        concurrency,
        ...(file === undefined ? {} : { useWorkerThreads: threads }),
        ...options,
        ...times,
      });
      worker.on('completed', onDone);
      worker.on('error', (error) => console.error(error.message));
      await worker.waitUntilReady();
      return { stop: () => worker.close(), lockThread: () => worker.health().lockThread };
    },
    close: async () => {
      await queue.close();
      if (typeof connection !== 'string') await connection.close();
    },
  };
}

/** Options that a build does not have are let pass by its worker, and would be measured without effect; those that it has are checked. */
async function refuseUnknown(option) {
  let worker;
  try {
    worker = new Worker('unused', async () => undefined, { connection: 'memory:', autorun: false, [option]: -1 });
  } catch {
    return;
  }
  await worker.close();
  throw new Error(`This build has no option ${option}.`);
}
