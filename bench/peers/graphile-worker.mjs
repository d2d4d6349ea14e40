// graphile-worker 0.17, as it comes, or tuned: a local queue and completions in batches. Finished jobs are deleted; it knows no other way.
// A lock lasts four hours, and nothing shortens it.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';

const TASK = 'work';
const logger = new Logger(() => () => undefined);

export async function open({ url, options: { tuned = false } = {} }) {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  return {
    add: (data) => utils.addJob(TASK, data),
    addBulk: (list) => utils.addJobs(list.map((payload) => ({ identifier: TASK, payload }))),
    work: async ({ concurrency }, handle, onDone) => {
      const tuning = tuned
        ? { localQueue: { size: Math.max(500, concurrency * 2) }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
        : {};
      const worker = { connectionString: url, concurrentJobs: concurrency, ...tuning };
      const runner = await run({
        preset: { worker },
        logger,
        noHandleSignals: true,
        taskList: { [TASK]: (data) => handle(data) },
      });
      runner.events.on('job:complete', onDone);
      return { stop: () => runner.stop() };
    },
    close: () => utils.release(),
  };
}
