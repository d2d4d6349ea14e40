// Follows the event log of the store from beside and writes down which finishes the store has accepted. The log is trimmed, so it is read
// all the while.
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 250;
const AT_ONCE = 1000;
/** A promoted replica may give numbers again that we have read before. */
const OVERLAP = 3000;

export class Settlements {
  count = 0;
  #store;
  #note;
  #last = 0;
  #known = undefined;
  #seen = new Set();
  #over = false;
  #following;

  /** `store()` is the one that serves at the moment. */
  constructor(store, note) {
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
    if (this.#known !== undefined && this.#known !== store) this.#last = Math.max(0, this.#last - OVERLAP);
    this.#known = store;
    for (;;) {
      const { events, last } = await store.events('work', this.#last, AT_ONCE);
      this.#last = last;
      for (const event of events) this.#take(event);
      if (events.length < AT_ONCE) return;
    }
  }

  #take({ id: number, name, jobId: id, returnvalue, failedReason }) {
    if (name !== 'completed' && name !== 'failed') return;
    const mark = `${number} ${id} ${returnvalue}`;
    if (this.#seen.has(mark)) return;
    this.#seen.add(mark);
    this.count += 1;
    if (name === 'completed') this.#note('accepted', { id, outcome: name, ...JSON.parse(returnvalue) });
    else this.#note('accepted', { id, outcome: name, reason: failedReason });
  }
}
