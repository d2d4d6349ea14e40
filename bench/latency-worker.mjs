// The far end of the latency measurement: tells when a handler started.
import { Worker } from 'holdfast';

const worker = new Worker('far', async () => void process.send(String(process.hrtime.bigint())), { connection: process.argv[2] });
worker.once('ready', () => process.send('ready'));
process.once('message', () => void worker.close().then(() => process.disconnect()));
