import { CHILD_QUEUE } from '../flows.mjs';
import { endWith, plan } from './actor.mjs';
import { startWorking } from './working.mjs';

const queues = plan.hasFlows ? [...plan.queues, CHILD_QUEUE] : plan.queues;
const stops = queues.map(startWorking);
endWith(() => Promise.all(stops.map((stop) => stop())));
