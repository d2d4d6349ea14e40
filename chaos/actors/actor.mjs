// What every actor has: its plan, its line into the history, its watch and its way to the fenced resource. It ends when it is told to
// (SIGTERM), and when its conductor is gone.
import { openHistory } from '../history.mjs';
import { Random } from '../random.mjs';
import { openFencedWrites } from './fenced-writes.mjs';
import { Watch } from './watch.mjs';

export const plan = JSON.parse(process.argv[2]);
export const random = new Random(plan.seed);
export const note = openHistory(plan.folder, plan.who);
export const watch = new Watch(note, plan.watch);
export const resource = openFencedWrites(plan.resource, plan.who);

export function noteError({ code, message }) {
  note('error', { code, message });
}

/** For whoever reads the history of one that did not close: is it `close` itself, or what it left behind? */
const LONG_MS = 20_000;
const noteDelay = () => note('still closing', { isClosed, open: process.getActiveResourcesInfo() });
let isClosed = false;

/** `close` resolves when nothing of the actor is left. */
export function endWith(close) {
  let closing;
  process.on('SIGTERM', () => {
    if (closing !== undefined) return;
    setTimeout(noteDelay, LONG_MS).unref();
    closing = close().then(
      () => {
        isClosed = true;
        watch.close();
      },
      (error) => {
        note('failed to close', { message: error.message });
        process.exitCode = 1;
        watch.close();
      },
    );
  });
  process.on('disconnect', () => process.exit());
  // Listening for the conductor must not keep a process alive that has closed everything.
  process.channel.unref();
  note('ready');
  process.send('ready');
}

const asleep = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the event loop without burning the processor, looking at the locks all the while. */
export function block(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    Atomics.wait(asleep, 0, 0, 3);
    watch.look();
  }
}
