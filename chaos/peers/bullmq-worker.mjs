// The same handlers on BullMQ's worker. It says that a renewal has failed; as its manual shows, the job is cancelled then, so that the
// handler's signal fires. There is no fence: the number of the attempt orders the runs of a job in the history, and nobody checks it.
import { requirePeer } from '../../bench/peers.mjs';
import { endWith, note, noteError, plan } from '../actors/actor.mjs';
import { handlerOf } from '../actors/handler.mjs';
import { CHILD_QUEUE } from '../flows.mjs';
import { jobName } from '../job-name.mjs';
import { bullmqOptions, endConnection } from './bullmq-connection.mjs';

const { Worker } = requirePeer('bullmq');
// BullMQ asks for `maxRetriesPerRequest: null` itself. Everything else is its default.
const options = bullmqOptions(plan.connection, { maxRetriesPerRequest: null });
const queues = plan.hasFlows ? [...plan.queues, CHILD_QUEUE] : plan.queues;
const workers = queues.map((queue) => {
  const lockOf = ({ id, attemptsStarted }, signal) => ({
    fence: attemptsStarted,
    queue: jobName(queue, id),
    isHeld: () => !signal.aborted,
  });
  const { lockDuration, lockRenewTime, stalledInterval, maxStalledCount } = plan.keeping;
  const times = lockDuration === undefined ? {} : { lockDuration, lockRenewTime, stalledInterval, maxStalledCount };
  const worker = new Worker(queue, handlerOf(queue, lockOf), {
    ...options,
    name: plan.who,
    concurrency: 5,
    runRetryDelay: 1000,
    ...times,
  });
  worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => worker.cancelJob(id, 'lock lost')));
  worker.on('completed', ({ id }, { fence }) => note('completed', { id: jobName(queue, id), fence }));
  return worker.on('error', noteError);
});
endWith(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  endConnection(options);
});
