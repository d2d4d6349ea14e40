// A simulated process: a host's clocks, a main loop, perhaps a lock thread, a connection of each to the store, and product code that belongs
// to it alone. It can crash (all of it is gone at once, nothing is handed back), freeze and go on, exit in order, and have its clock stepped.
import { ambientOf, builtinsOf } from './ambient.mjs';
import { SplitEngine } from './engines/split.mjs';
import { HostClock } from './host-clock.mjs';
import { Link } from './link.mjs';
import { threadClass } from './lock-thread.mjs';
import { Loop } from './loop.mjs';
import { Realm } from './realm.mjs';
import { splitStore } from './split/client.mjs';

/** What product code is told to connect to. */
export const CONNECTION = { module: 'simulated-store', export: 'store' };
/** Simulated jobs take long. At their pace, a worker would claim none ahead: it claims as many as it may until some have to go back. */
const EAGER = {
  'worker/pace.js': () => ({
    Pace: class {
      #isBroken = true;

      ended() {
        this.#isBroken = false;
      }

      answered() {}

      expected() {
        return this.#isBroken ? 0 : Number.POSITIVE_INFINITY;
      }

      broken() {
        this.#isBroken = true;
      }
    },
  }),
};

/** A process that exits waits this long for its thread to hand everything back. */
const EXIT_MS = 300;

export class SimProcess {
  isDead = false;
  /** That its worker may hold at once. */
  mostJobs = 0;
  /** Its worker does not renew its locks. */
  isTimed = false;
  loop;
  /** Set while it has a lock thread. */
  thread;
  links = [];
  #ambient;
  #clock;
  #context;
  #ids = 0;
  #frozenUntil = 0;

  /** `context`: what all processes of a run share. */
  constructor(name, context) {
    this.name = name;
    this.world = context.world;
    this.random = context.random.fork(name);
    this.#context = context;
    // Within a hundredth of each other: trust is shorter than the lock by a twentieth. Any start, so that 32 bits wrap around now and then.
    const rate = this.random.between(0.995, 1.005);
    this.#clock = new HostClock(this.world, { rate, startMs: Math.floor(this.random.next() * 2 ** 33) });
    this.loop = this.makeLoop('main');
    this.realm = this.makeRealm(this.loop, { Worker: threadClass(this) });
  }

  get isFrozen() {
    return this.#frozenUntil > this.world.now;
  }

  get isOutOfSight() {
    return this.links.some((link) => link.isOutOfSight);
  }

  makeLoop(part) {
    return new Loop(part === 'main' ? this.name : `${this.name}:${part}`, this.world, this.#clock);
  }

  makeRealm(loop, threads) {
    const { server, history, shared, defect, plan } = this.#context;
    const link = new Link({
      world: this.world,
      loop,
      server,
      random: this.random.fork(loop.name),
      history,
      process: this,
      plan,
    });
    this.links.push(link);
    const ids = { next: () => `${defect?.reusesIds === true ? this.name[0] : this.name}.${++this.#ids}` };
    const ambient = ambientOf({ loop, clock: this.#clock, random: this.random.fork('product'), pid: 1000 });
    if (loop === this.loop) this.#ambient = ambient;
    const builtins = builtinsOf({ ambient, loop, ids, host: this.name, threads });
    const foreign = { [CONNECTION.module]: {} };
    const modules = { ...EAGER, ...defect?.modules };
    const bend = server.isSplit ? SplitEngine.bend(modules) : modules;
    const realm = new Realm({ ambient, builtins, shared, bend, foreign });
    const store = server.isSplit ? splitStore(link.store, realm) : link.store;
    foreign[CONNECTION.module][CONNECTION.export] = defect?.client?.(store, this) ?? store;
    return realm;
  }

  get clock() {
    return this.#clock;
  }

  sleep(ms) {
    return new Promise((resolve) => this.loop.setTimeout(resolve, ms));
  }

  /** As a synchronous loop does: the main loop stands still, its thread goes on. */
  block(ms) {
    this.loop.hold(ms);
    return new Promise((resolve) => this.loop.setImmediate(resolve));
  }

  freeze(ms) {
    this.#frozenUntil = Math.max(this.#frozenUntil, this.world.now + ms);
    this.loop.hold(ms);
    this.thread?.loop.hold(ms);
  }

  stepWall(ms) {
    this.#clock.stepWall(ms);
  }

  crash() {
    this.isDead = true;
    this.loop.die();
    this.thread?.loop.die();
    for (const link of this.links) link.die();
  }

  /** In order, or of an exception: the thread, if there is one, hands back what it can. */
  exit(isException) {
    if (isException) this.#ambient.process.emit('uncaughtExceptionMonitor', new Error('a handler threw out of turn'));
    this.#ambient.process.emit('exit', isException ? 1 : 0);
    this.isDead = true;
    this.loop.die();
    if (this.thread === undefined) this.crash();
    else this.#context.nemesis.arrive(this.world.now + EXIT_MS, () => this.crash());
  }
}
