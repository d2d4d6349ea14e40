// No more jobs start than the rate allows. A worker that is killed between its claim and its first line has started a job that the history
// does not know, so where a window began is not known either. But windows are at least their duration apart: a span of k durations touches
// k + 1 of them at most.
import { RATE } from '../rates.mjs';

/** The longest span, in durations. */
const SPAN = 20;
/** The store rounds the times of starts. */
const ROUNDING_MS = 2;

export function judgeRates(entries, { max, duration } = RATE) {
  const starts = startsOf(entries);
  for (const [first, { startedOn: from }] of starts.entries()) {
    for (let spans = 1; spans <= SPAN; spans += 1) {
      const over = starts[first + (spans + 1) * max];
      if (over === undefined || over.startedOn >= from + spans * duration - ROUNDING_MS) continue;
      const text = `more than ${(spans + 1) * max} jobs started within ${over.startedOn - from} ms, where each window of ${duration} ms allows ${max}`;
      const { at, fence } = over;
      // One is enough: what follows from it is no news.
      return [{ rule: 'rate over its limit', text, at, concerns: { fences: [fence], from: starts[first].at, to: at } }];
    }
  }
  return [];
}

/** Runs that a rate has let start, in the order of the store's clock. */
function startsOf(entries) {
  const taken = entries.filter(({ event, startedOn }) => event === 'take' && startedOn !== undefined);
  return taken.toSorted((a, b) => a.startedOn - b.startedOn);
}

export function countRated(entries) {
  return startsOf(entries).length;
}
