import { FlowProducer, Queue } from 'holdfast';
import { endWith, noteError, plan } from './actor.mjs';
import { startFlowing } from './flowing.mjs';
import { startProducing } from './producing.mjs';
import { startScheduling } from './scheduling.mjs';
import { startStepping } from './stepping.mjs';

const queues = plan.queues.map((name) =>
  new Queue(name, { connection: plan.connection, ...plan.keeping }).on('error', noteError),
);
const stops = [
  startProducing(queues),
  ...(plan.hasSchedule ? queues.map(startScheduling) : []),
  ...(plan.hasSteps ? queues.map(startStepping) : []),
  ...(plan.hasFlows ? [startFlowing(new FlowProducer({ connection: plan.connection }).on('error', noteError))] : []),
];
endWith(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await Promise.all(queues.map((queue) => queue.close()));
});
