import { Worker } from 'holdfast';
import { GROUP_CONCURRENCY } from '../groups.mjs';
import { jobName } from '../job-name.mjs';
import { RATE } from '../rates.mjs';
import { note, noteError, plan } from './actor.mjs';
import { handlerOf } from './handler.mjs';

/** Answers how to stop. */
export function startWorking(queue) {
  const worker = new Worker(queue, handlerOf(queue), {
    connection: plan.connection,
    name: plan.who,
    concurrency: 5,
    runRetryDelay: 1000,
    ...(plan.hasGroups ? { group: { concurrency: GROUP_CONCURRENCY } } : {}),
    ...(plan.hasRate && plan.queues.includes(queue) ? { limiter: RATE } : {}),
    ...plan.keeping,
  });
  worker.on('completed', ({ id }, { fence }) => note('completed', { id: jobName(queue, id), fence }));
  worker.on('error', noteError);
  return () => worker.close();
}
