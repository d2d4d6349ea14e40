import { Queue } from 'holdfast';
import { endWith, noteError, plan } from './actor.mjs';
import { startProducing } from './producing.mjs';

const queues = plan.queues.map((name) =>
  new Queue(name, { connection: plan.connection, ...plan.keeping }).on('error', noteError),
);
const stop = startProducing(queues);
endWith(async () => {
  await stop();
  await Promise.all(queues.map((queue) => queue.close()));
});
