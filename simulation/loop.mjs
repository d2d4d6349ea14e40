// One event loop under the scheduler: of a simulated process, of its lock thread, or of the server. It has Node's phases (timers, then what
// has arrived, then immediates), so that code which relies on their order finds it; one callback is one step. While it is held (frozen, or
// blocked by a handler) nothing of it runs and everything waits; once it is dead, everything of it is gone.

const TIMERS = 0;
const POLL = 1;
const CHECK = 2;
const PHASES = 3;
const MAX_TIMER_MS = 2 ** 31 - 1;

class Timer {
  constructor(loop, at, order, call) {
    this.loop = loop;
    this.at = at;
    this.order = order;
    this.call = call;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }
}

export class Loop {
  name;
  heldUntil = 0;
  dead = false;
  #world;
  #clock;
  #timers = [];
  #arrivals = [];
  #immediates = [];
  #turn = [];
  #phase = TIMERS;
  #order = 0;

  constructor(name, world, clock) {
    this.name = name;
    this.#world = world;
    this.#clock = clock;
    world.loops.push(this);
  }

  /** When its next callback can run, on the clock of the world. */
  get nextAt() {
    if (this.dead) return Number.POSITIVE_INFINITY;
    let at = this.#immediates.length + this.#turn.length > 0 ? this.#world.now : Number.POSITIVE_INFINITY;
    at = Math.min(at, this.#timers[0]?.at ?? at, this.#arrivals[0]?.at ?? at);
    return Math.max(at, this.heldUntil);
  }

  get held() {
    return this.heldUntil > this.#world.now;
  }

  hold(ms) {
    this.heldUntil = Math.max(this.heldUntil, this.#world.now + ms);
  }

  die() {
    this.dead = true;
    this.#timers = [];
    this.#arrivals = [];
    this.#immediates = [];
    this.#turn = [];
  }

  /** Runs one callback of those that can run now. */
  step() {
    for (let looked = 0; looked <= PHASES; looked += 1) {
      const call = this.#next();
      if (call !== undefined) {
        call();
        // A loop waits where things arrive: after a freeze, what has arrived is read before any timer.
        if (this.nextAt > this.#world.now) this.#phase = POLL;
        return;
      }
      this.#phase = (this.#phase + 1) % PHASES;
      if (this.#phase === CHECK) this.#turn.push(...this.#immediates.splice(0));
    }
  }

  #next() {
    if (this.#phase === CHECK) return this.#turn.shift()?.call;
    const list = this.#phase === TIMERS ? this.#timers : this.#arrivals;
    return (list[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#world.now ? list.shift().call : undefined;
  }

  /** Something comes in from outside. */
  arrive(at, call) {
    if (!this.dead) insert(this.#arrivals, { at, order: ++this.#order, call });
  }

  /** As Node's: whole milliseconds from the loop's own rounded time, so up to one early on a finer clock. */
  setTimeout(call, ms, ...args) {
    return this.#timer(() => call(...args), ms);
  }

  setInterval(call, ms, ...args) {
    const tick = () => {
      this.#start(timer, ms);
      call(...args);
    };
    const timer = this.#timer(tick, ms);
    return timer;
  }

  setImmediate(call, ...args) {
    const immediate = { call: () => call(...args), ref: () => immediate, unref: () => immediate };
    if (!this.dead) this.#immediates.push(immediate);
    return immediate;
  }

  clear(timer) {
    if (timer === undefined || timer === null) return;
    for (const list of [this.#timers, this.#immediates, this.#turn]) {
      const index = list.indexOf(timer);
      if (index !== -1) list.splice(index, 1);
    }
  }

  #timer(call, ms) {
    const timer = new Timer(this, 0, 0, call);
    this.#start(timer, ms);
    return timer;
  }

  #start(timer, ms) {
    const whole = ms >= 1 && ms <= MAX_TIMER_MS ? Math.trunc(ms) : 1;
    timer.at = this.#clock.worldTime(Math.floor(this.#clock.monotonic()) + whole);
    timer.order = ++this.#order;
    if (!this.dead) insert(this.#timers, timer);
  }
}

function insert(list, item) {
  let index = list.length;
  while (index > 0 && (list[index - 1].at > item.at || (list[index - 1].at === item.at && list[index - 1].order > item.order))) {
    index -= 1;
  }
  list.splice(index, 0, item);
}
