// The observed producer: it adds jobs and waits for some, takes named locks, reads events, and does what an operator does.
import { Queue, QueueEvents } from 'holdfast';
import { endWith, noteError, plan, random } from '../../chaos/actors/actor.mjs';
import { startLocking } from '../../chaos/actors/locking.mjs';
import { startProducing } from '../../chaos/actors/producing.mjs';
import { leakingJobs } from './leak.mjs';
import { startOperating } from './operating.mjs';
import { answerSamples } from './samples.mjs';

const WAIT_MS = 20_000;
const { connection, keeping } = plan;
const open = (name) => new Queue(name, { connection, ...keeping }).on('error', noteError);
const queues = plan.queues.map(open);
const scratch = open('scratch');
const forgotten = open('forgotten');
const logs = new Map(plan.queues.map((name) => [name, new QueueEvents(name, { connection }).on('error', noteError)]));
let heard = 0;
for (const log of logs.values()) log.on('completed', () => (heard += 1)).on('failed', () => (heard += 1));

/** It may fail or last too long: what matters is that nothing of the waiting stays. */
function waitForSome(queue, jobs) {
  if (random.chance(0.1)) jobs[0].waitUntilFinished(logs.get(queue.name), WAIT_MS).catch(() => undefined);
}

const stops = [
  startProducing(queues, waitForSome),
  startLocking(queues[0]),
  startOperating(queues, scratch),
  leakingJobs(forgotten),
];
answerSamples();
endWith(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await Promise.all([...queues, scratch, forgotten, ...logs.values()].map((part) => part.close()));
});
