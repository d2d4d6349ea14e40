// Looks at `held` of everything that this process holds, in turns of a few milliseconds, and writes down what it read. The moment of a look
// is taken before it: a lock that reads as held was held then or later. A handler that blocks the loop calls `look()` itself.
import { now } from '../history.mjs';

const TIMES = { lookMs: 5, writeMs: 25 };

export class Watch {
  #note;
  #times;
  #holds = new Set();
  #writtenAt = 0;
  #timer;

  constructor(note, times = TIMES) {
    this.#note = note;
    this.#times = times;
  }

  /** From now on this process acts as the owner of `things`, under one fence. */
  take({ things, queue, fence, isHeld, ...fields }) {
    const at = now();
    const hold = { queue, fence, isHeld, lastHeld: undefined, told: false };
    this.#note('take', { things, queue, fence, held: isHeld(), ...fields }, at);
    this.#holds.add(hold);
    this.#timer ??= setInterval(() => this.look(), this.#times.lookMs);
    this.#read(hold);
    return {
      get isTold() {
        return hold.told;
      },
      end: (how) => {
        if (!this.#holds.has(hold)) return;
        this.#read(hold);
        this.#holds.delete(hold);
        if (this.#holds.size === 0) this.close();
        this.#note('end', { queue, fence, lastHeld: hold.lastHeld, how });
      },
    };
  }

  look() {
    for (const hold of this.#holds) this.#read(hold);
    if (now() - this.#writtenAt < this.#times.writeMs) return;
    this.#writtenAt = now();
    // Nobody ends a process that was killed: what it last believed must be in the history by then.
    const held = [...this.#holds].filter(({ told }) => !told).map(({ queue, fence, lastHeld }) => ({ queue, fence, lastHeld }));
    if (held.length > 0) this.#note('holds', { held });
  }

  close() {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #read(hold) {
    const at = now();
    if (hold.isHeld()) {
      // Once told, a lock must not come back: the judge sees a `lastHeld` that lies behind it.
      hold.lastHeld = at;
      return;
    }
    if (hold.told) return;
    hold.told = true;
    this.#note('told', { queue: hold.queue, fence: hold.fence, lastHeld: hold.lastHeld });
  }
}
