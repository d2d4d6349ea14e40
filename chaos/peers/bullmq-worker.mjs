// The same handlers on BullMQ's worker. It says that a renewal has failed; as its manual shows, the job is cancelled then, so that the
// handler's signal fires. There is no fence: the number of the attempt orders the runs of a job in the history, and nobody checks it.
import { requirePeer } from '../../bench/peers.mjs';
import { endWith, note, noteError, plan } from '../actors/actor.mjs';
import { handlerOf } from '../actors/handler.mjs';
import { jobName } from '../job-name.mjs';

const { Worker } = requirePeer('bullmq');
const workers = plan.queues.map((queue) => {
  const lockOf = ({ id, attemptsStarted }, signal) => ({
    fence: attemptsStarted,
    queue: jobName(queue, id),
    isHeld: () => !signal.aborted,
  });
  const { lockDuration, lockRenewTime, stalledInterval, maxStalledCount } = plan.keeping;
  const times = lockDuration === undefined ? {} : { lockDuration, lockRenewTime, stalledInterval, maxStalledCount };
  // BullMQ asks for `maxRetriesPerRequest: null` itself. Everything else is its default.
  const worker = new Worker(queue, handlerOf(queue, lockOf), {
    connection: { url: plan.connection, maxRetriesPerRequest: null },
    name: plan.who,
    concurrency: 5,
    runRetryDelay: 1000,
    ...times,
  });
  worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => worker.cancelJob(id, 'lock lost')));
  worker.on('completed', ({ id }, { fence }) => note('completed', { id: jobName(queue, id), fence }));
  return worker.on('error', noteError);
});
endWith(() => Promise.all(workers.map((worker) => worker.close())));
