import { Queue } from 'holdfast';
import { endWith, noteError, plan } from './actor.mjs';
import { startLocking } from './locking.mjs';

const queue = new Queue(plan.queues[0], { connection: plan.connection, ...plan.keeping }).on('error', noteError);
const stop = startLocking(queue);
endWith(async () => {
  await stop();
  await queue.close();
});
