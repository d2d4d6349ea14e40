// A worker that runs the acts in its own process: what a sandbox protects from.
import { Queue, Worker } from 'holdfast';
import act from './acts.mjs';

const [, , connection, name] = process.argv;
const queue = new Queue(`bare-${name}`, { connection });
const worker = new Worker(`bare-${name}`, act, { connection });
worker.on('error', () => undefined);
await queue.add(name);
