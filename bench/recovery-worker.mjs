// A worker with default options whose only job never ends; tells when it is ready and when a handler started.
import { Worker } from 'holdfast';

const tell = (event) => process.send({ event, at: String(process.hrtime.bigint()) });
const worker = new Worker('recovery', () => new Promise(() => tell('started')), { connection: process.argv[2] });
worker.once('ready', () => tell('ready'));
