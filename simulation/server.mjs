// The server of a run: the memory store on the simulated clock, behind an event loop of its own. Whatever it carries out goes past the
// witness, who sees the request, the reply and the store before and after, whether or not the caller ever hears of it.
import { ambientOf, builtinsOf } from './ambient.mjs';
import { withHints } from './hints.mjs';
import { HostClock } from './host-clock.mjs';
import { Loop } from './loop.mjs';
import { Realm } from './realm.mjs';

export class Server {
  loop;
  /** As anybody may read it; nothing of the run goes this way. */
  store;
  /** The process whose request is being carried out. */
  caller;
  /** The store as its callers meet it. */
  #served;
  #witness;
  #HoldfastError;

  constructor({ world, random, shared, defect, hints, witnessFor }) {
    const clock = new HostClock(world);
    this.loop = new Loop('store', world, clock);
    const ambient = ambientOf({ loop: this.loop, clock, random, pid: 1 });
    const builtins = builtinsOf({ loop: this.loop, host: 'store', ids: undefined, threads: {} });
    const realm = new Realm({ ambient, builtins, shared, bend: defect?.modules });
    const { MemoryStore } = realm.load('store/memory/index.js');
    this.#HoldfastError = realm.load('errors.js').HoldfastError;
    this.store = new MemoryStore({ clock: defect?.clock?.(clock, this) ?? clock });
    this.#witness = witnessFor(this.store);
    const hinting = hints === 'none' ? {} : withHints(this.store, { witness: this.#witness, isFallible: hints === 'fallible' });
    const hinted = layered(this.store, hinting);
    this.#served = layered(hinted, defect?.store?.(hinted) ?? {});
  }

  unavailable(message) {
    return new this.#HoldfastError('STORE_UNAVAILABLE', message, { retryable: true });
  }

  watch(queue, listener) {
    return this.store.watch(queue, listener);
  }

  receive(at, request) {
    this.loop.arrive(at, () => void this.#carryOut(request));
  }

  async #carryOut(request) {
    const { verb, args, times, answer } = request;
    let first;
    for (let time = 0; time < times; time += 1) {
      const reply = await this.#ask(request, verb, args);
      first ??= reply;
    }
    answer(first.error, first.reply);
  }

  async #ask({ process }, verb, args) {
    this.caller = process;
    const after = this.#witness.before(verb, args, process);
    let answer;
    try {
      answer = { reply: await this.#served[verb](...args) };
    } catch (error) {
      answer = { error };
    }
    await after(answer);
    return answer;
  }
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
