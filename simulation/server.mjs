// The server of a run: a store on the simulated clock, behind an event loop of its own. Whatever it carries out goes past the
// books, which see the request, the reply and the store before and after, whether or not the caller ever hears of it.
// Where the plan says so there is a replica too, which carries out the same a little later, and takes over without the last of it.
import { ambientOf, builtinsOf } from './ambient.mjs';
import { MemoryEngine } from './engines/memory.mjs';
import { SqliteEngine } from './engines/sqlite.mjs';
import { HostClock } from './host-clock.mjs';
import { Loop } from './loop.mjs';
import { Realm } from './realm.mjs';

export const ENGINES = { memory: MemoryEngine, sqlite: SqliteEngine };

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

  constructor({ world, random, shared, defect, engine, plan, witness }) {
    this.#world = world;
    this.#witness = witness;
    const clock = new HostClock(world);
    this.loop = new Loop('store', world, clock);
    const ambient = ambientOf({ loop: this.loop, clock, random, pid: 1 });
    const builtins = builtinsOf({ ambient, loop: this.loop, host: 'store', ids: undefined, threads: {} });
    const parts = { ambient, builtins, shared, bend: defect?.modules };
    this.#HoldfastError = new Realm(parts).load('errors.js').HoldfastError;
    const storeClock = defect?.clock?.(clock, this) ?? clock;
    const copy = () => copyOf(new ENGINES[engine]({ world, clock: storeClock, ...parts }), { witness, plan, defect });
    const failover = plan.faults.find(({ what }) => what === 'failover');
    this.#copies = failover === undefined ? [copy()] : [copy(), copy()];
    this.#copiedUntil = failover === undefined ? 0 : failover.at - failover.ms;
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
    this.#last = this.#last.then(() => this.#witness.tookOver(this.#copies[1].books)).then(() => this.#copies.reverse());
    this.#copiedUntil = 0;
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
    const after = books.before(verb, args, process);
    let answer;
    try {
      answer = { reply: await served[verb](...args) };
    } catch (error) {
      answer = { error };
    }
    await after(answer);
    return answer;
  }
}

function copyOf(engine, { witness, plan, defect }) {
  const books = witness.booksFor(engine.store, engine.time);
  const hinted = layered(engine.served, engine.hinting(books, plan.hints));
  return { engine, books, served: layered(hinted, defect?.store?.(hinted) ?? {}) };
}

/** A store some of whose verbs are others. */
function layered(right, verbs) {
  return new Proxy(right, {
    get: (_, verb) => {
      const value = verbs[verb] ?? right[verb];
      return typeof value === 'function' ? value.bind(right) : value;
    },
  });
}
