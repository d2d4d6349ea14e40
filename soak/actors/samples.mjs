// Answers the conductor how much this process holds: memory after a collection, handles, timers, descriptors, threads.
import { readdirSync, readFileSync } from 'node:fs';

/** Timers and requests come and go with the jobs that run; what stays open is counted apart. */
const TIMERS = new Set(['Timeout', 'Immediate']);
const isRequest = (kind) => /Req(uest)?(Wrap|Callback)?$/.test(kind);

export function answerSamples() {
  process.on('message', ({ number, wants }) => {
    if (wants === 'sample') process.send({ number, ...sample() });
  });
}

function sample() {
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  const kinds = process.getActiveResourcesInfo();
  return {
    rss,
    heap: heapUsed + external,
    handles: kinds.filter((kind) => !TIMERS.has(kind) && !isRequest(kind)).length,
    timers: kinds.filter((kind) => TIMERS.has(kind)).length,
    // Less the one that reads the folder.
    descriptors: readdirSync('/proc/self/fd').length - 1,
    threads: Number(/^Threads:\s+(\d+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]),
  };
}
