// Follows the event logs of a store's queues from beside and writes down which finishes the store has accepted, and which slots of
// schedules have got jobs. The logs are trimmed, so they are
// read all the while.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from './job-name.mjs';
import { isSlot } from './schedules.mjs';

const LOOK_MS = 250;
const AT_ONCE = 1000;
/** A promoted replica may give numbers again that we have read before. */
const OVERLAP = 3000;

export class Settlements {
  count = 0;
  #store;
  #note;
  #last;
  #known = undefined;
  #seen = new Set();
  #over = false;
  #following;

  /** `store()` is the one that serves at the moment. */
  constructor(store, queues, note) {
    this.#last = new Map(queues.map((queue) => [queue, 0]));
    this.#store = store;
    this.#note = note;
    this.#following = this.#follow();
  }

  async stop() {
    this.#over = true;
    await this.#following;
  }

  async #follow() {
    while (!this.#over) {
      // The server may be away for a while.
      await this.read().catch(() => undefined);
      await sleep(LOOK_MS);
    }
  }

  /** What is there by now. */
  async read() {
    const store = this.#store();
    const isNew = this.#known !== undefined && this.#known !== store;
    this.#known = store;
    for (const [queue, last] of this.#last) await this.#readFrom(queue, isNew ? Math.max(0, last - OVERLAP) : last);
  }

  async #readFrom(queue, from) {
    for (let after = from; ; ) {
      const { events, last } = await this.#known.events(queue, after, AT_ONCE);
      after = last;
      this.#last.set(queue, last);
      for (const event of events) this.#take(queue, event);
      if (events.length < AT_ONCE) return;
    }
  }

  #take(queue, { id: number, name, jobId, returnvalue, failedReason }) {
    const isOfSlot = isSlot(jobId) && (name === 'added' || name === 'removed');
    if (name !== 'completed' && name !== 'failed' && !isOfSlot) return;
    const id = jobName(queue, jobId);
    const mark = `${number} ${name} ${id} ${returnvalue}`;
    if (this.#seen.has(mark)) return;
    this.#seen.add(mark);
    if (isOfSlot) return this.#note('slot', { id, change: name === 'added' ? 'made' : 'gone' });
    this.count += 1;
    if (name === 'completed') this.#note('accepted', { id, outcome: name, ...JSON.parse(returnvalue) });
    else this.#note('accepted', { id, outcome: name, reason: failedReason });
  }
}
