import { endWith, plan } from './actor.mjs';
import { startWorking } from './working.mjs';

const stops = plan.queues.map(startWorking);
endWith(() => Promise.all(stops.map((stop) => stop())));
