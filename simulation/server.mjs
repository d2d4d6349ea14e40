// The server of a run: a store on the simulated clock, behind an event loop of its own. Whatever it carries out goes past the
// books, which see the request, the reply and the store before and after, whether or not the caller ever hears of it.
// Where the plan says so there is a replica too, which carries out the same a little later, and takes over without the last of it.
import { ambientOf, builtinsOf } from './ambient.mjs';
import { MemoryEngine } from './engines/memory.mjs';
import { SplitEngine } from './engines/split.mjs';
import { SqliteEngine } from './engines/sqlite.mjs';
import { HostClock } from './host-clock.mjs';
import { Loop } from './loop.mjs';
import { Realm } from './realm.mjs';

export const ENGINES = { memory: MemoryEngine, sqlite: SqliteEngine, split: SplitEngine };

export class Server {
  loop;
  /** The process whose request is being carried out. */
  caller;
  #world;
  #witness;
  /** The one that is asked, and its replica. */
  #copies;
  /** What the replica gets to know ends here. */
  #copiedUntil;
  #HoldfastError;
  /** A store that takes more than one step for a call takes the next one afterwards. */
  #last = Promise.resolve();

  /** `failover`: the fault of that kind that strikes this server, if one does. */
  constructor({ world, random, shared, defect, engine, witness, failover, name = 'store' }) {
    this.#world = world;
    this.#witness = witness;
    const clock = new HostClock(world);
    this.loop = new Loop(name, world, clock);
    const ambient = ambientOf({ loop: this.loop, clock, random, pid: 1 });
    const builtins = builtinsOf({ ambient, loop: this.loop, host: 'store', ids: undefined, threads: {} });
    const parts = { ambient, builtins, shared, bend: ENGINES[engine].bend(defect?.modules) };
    this.#HoldfastError = new Realm(parts).load('errors.js').HoldfastError;
    const storeClock = defect?.clock?.(clock, this) ?? clock;
    const copy = () => new ENGINES[engine]({ world, clock: storeClock, ...parts });
    this.engines = failover === undefined ? [copy()] : [copy(), copy()];
    this.#copiedUntil = failover === undefined ? 0 : failover.at - failover.ms;
  }

  /** `books`: for each copy, those that see what it carries out. */
  keepBooks(books, { plan, defect }) {
    this.#copies = this.engines.map((engine, index) => copyOf(engine, books[index], { plan, defect }));
  }

  /** True if the store keeps jobs with parents and children. */
  get hasFamilies() {
    return this.#copies[0].engine.store.capabilities.families === true;
  }

  async open() {
    for (const { engine } of this.#copies) await engine.open();
  }

  close() {
    for (const { engine } of this.#copies) engine.close();
  }

  /** The replica is the store from now on. */
  failOver() {
    this.#last = this.#last.then(() => this.#witness.tookOver(this.#copies[1].books[0])).then(() => this.#copies.reverse());
    this.#copiedUntil = 0;
  }

  pause(ms) {
    this.loop.hold(ms);
  }

  /** The number of the server that a call goes to: there is one. */
  numberOf() {
    return 0;
  }

  unavailable(message) {
    return new this.#HoldfastError('STORE_UNAVAILABLE', message, { retryable: true });
  }

  watch(queue, listener) {
    const watched = this.#copies.map((copy) => copy.engine.store.watch(queue, () => copy === this.#copies[0] && listener()));
    return () => {
      for (const unwatch of watched) unwatch();
    };
  }

  receive(at, request) {
    this.loop.arrive(at, () => {
      this.#last = this.#last.then(() => this.#carryOut(request));
    });
  }

  async #carryOut(request) {
    const { times, answer } = request;
    const isCopied = this.#world.now < this.#copiedUntil;
    let first;
    for (let time = 0; time < times; time += 1) {
      const reply = await this.#ask(this.#copies[0], request);
      first ??= reply;
      if (isCopied) await this.#ask(this.#copies[1], request);
    }
    answer(first.error, first.reply);
  }

  async #ask({ engine, books, served }, { verb, args, process, link }) {
    this.caller = process;
    await engine.use(link, process);
    const after = books.map((each) => each.before(verb, args, process));
    let answer;
    try {
      answer = { reply: await served[verb](...args) };
    } catch (error) {
      answer = { error };
    }
    for (const see of after) await see(answer);
    return answer;
  }
}

function copyOf(engine, books, { plan, defect }) {
  const hinted = layered(engine.served, engine.hinting(together(books), plan.hints));
  return { engine, books, served: layered(hinted, defect?.store?.(hinted) ?? {}) };
}

/** Several books that see the same, as one. */
function together(books) {
  const [first] = books;
  return {
    processOf: (session) => first.processOf(session),
    graceOf: (session) => first.graceOf(session),
    endOf: (session) => first.endOf(session),
    shortened: (session, ms) => books.forEach((each) => each.shortened(session, ms)),
  };
}

/** A store some of whose verbs are others. */
export function layered(right, verbs) {
  return new Proxy(right, {
    get: (_, verb) => {
      const value = verbs[verb] ?? right[verb];
      return typeof value === 'function' ? value.bind(right) : value;
    },
  });
}
