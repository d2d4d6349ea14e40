// The observed worker: one process with a worker for each queue, and a candidate for leadership.
import { endWith, plan } from '../../chaos/actors/actor.mjs';
import { startLeading } from '../../chaos/actors/leading.mjs';
import { startWorking } from '../../chaos/actors/working.mjs';
import { leakingMemory, leakingStores } from './leak.mjs';
import { answerSamples } from './samples.mjs';

const stops = [...plan.queues.map(startWorking), startLeading(), leakingMemory(), leakingStores(), leakingStores()];
answerSamples();
endWith(() => Promise.all(stops.map((stop) => stop())));
