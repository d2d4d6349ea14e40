// Waits for a reply with a timeout. A late reply is dropped. A reply that arrived while the event loop was blocked is in time: it is
// read before the immediate.
import { clearTimeout, setImmediate, setTimeout } from './timers.js';

const LATE = Symbol('late');

/** Returns undefined after `ms` without a reply. The timer keeps the process alive. */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  const first = await firstOf(ms, answer, true);
  return first === LATE ? undefined : first;
}

/** Rejects with `late` after `ms` without a reply. With `ref` false, the timer does not keep the process alive. */
export async function inTime<T>(ms: number, answer: Promise<T>, late: () => Error, ref = true): Promise<T> {
  const first = await firstOf(ms, answer, ref);
  if (first === LATE) throw late();
  return first;
}

async function firstOf<T>(ms: number, answer: Promise<T>, ref: boolean): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, LATE), ms);
    if (!ref) timer.unref();
  });
  try {
    return await Promise.race([answer, over]);
  } finally {
    clearTimeout(timer);
  }
}
