// A connection between one loop and the store: the network. Requests and replies take their time, and what faults say happens to them:
// they are lost, late, doubled, or nobody hears of them for a long time. It gives out a store, which product code takes for the real one.

/** What may happen to the next calls of a connection. */
export const CALL_FAULTS = [
  /** The connection breaks before the request is there. */
  'lost request',
  /** The connection breaks before the reply is there: the store has done the work. */
  'lost reply',
  /** Half open: never there, or never answered. Its client gives it up after many seconds. */
  'silent request',
  'silent reply',
  /** There long after its caller has given up on it. */
  'slow request',
  'slow reply',
  /** Sent again by a client that reconnected: carried out twice in a row. */
  'doubled request',
];

/** What may happen to all calls of a connection for a while: refused at once, lost in silence, or delivered when it is over. */
export const CUTS = ['refused', 'silent', 'held up'];

const VERBS = [
  [
    'add',
    'claim',
    'settle',
    'openSession',
    'renew',
    'closeSessions',
    'sweep',
    'probe',
    'checkSessions',
    'extend',
    'acquire',
    'letGo',
  ],
  ['configure', 'write', 'change', 'schedule', 'forget', 'relay'],
  ['children', 'queues', 'jobs', 'status', 'logs', 'events', 'locks', 'sessions'],
  /** Only of two servers: see split/scripts.mjs. */
  ['kin', 'outgoing', 'deliver', 'overdue', 'remind'],
].flat();

const CAPABILITIES = { engine: 'simulated', shared: true, durable: true, inline: false, transactions: false };

const NO_CUT = { mode: undefined, from: 0, until: 0 };

export class Link {
  #world;
  #loop;
  #server;
  #random;
  #history;
  #capabilities;
  /** One connection, on which nothing overtakes anything; or a pool. */
  #isOrdered;
  /** By the number of the server. */
  #requestedUntil = [0, 0];
  #answeredUntil = [0, 0];
  #strikes = [];
  #cuts = [NO_CUT, NO_CUT];
  #unwatch = new Set();

  constructor({ world, loop, server, random, history, process, plan }) {
    this.#world = world;
    this.#loop = loop;
    this.#server = server;
    this.#random = random;
    this.#history = history;
    this.process = process;
    const { hints, lanes } = plan;
    this.#capabilities = { ...CAPABILITIES, crashHints: hints !== 'none', fallibleHints: hints === 'fallible', lanes };
    if (server.hasFamilies) this.#capabilities.families = true;
    this.#isOrdered = random.chance(0.5);
  }

  get store() {
    const store = {
      capabilities: this.#capabilities,
      describe: () => undefined,
      open: async () => undefined,
      close: async () => undefined,
      onWarning: () => () => undefined,
      watch: (queue, listener) => this.#watch(queue, listener),
    };
    for (const verb of VERBS) store[verb] = (...args) => this.#call(verb, args);
    return store;
  }

  /** The next `count` calls, of `verb` or of any, to `server` or to any, go wrong. */
  strike({ kind, verb, server, count, ms }) {
    this.#strikes.push({ kind, verb, server, left: count, ms });
  }

  /** When the store has carried out the next call of `verb`, and nobody knows of it yet, `act` is called. Its reply is late by `lateMs`. */
  ambush(verb, act, lateMs = 0) {
    this.#strikes.push({ kind: 'ambush', verb, left: 1, act, lateMs });
  }

  /** Without `server`: to all of them. */
  cut(mode, ms, { afterMs = 0, server } = {}) {
    const from = this.#world.now + afterMs;
    this.#cuts = this.#cuts.map((cut, number) => ((server ?? number) === number ? { mode, from, until: from + ms } : cut));
  }

  /** Faults are over, but for what is on its way. */
  heal() {
    this.#strikes = [];
  }

  /** The server has lost the connection. */
  get isOutOfSight() {
    return this.#cuts.some((_, number) => ['refused', 'silent'].includes(this.#cutNow(number)));
  }

  die() {
    for (const unwatch of this.#unwatch) unwatch();
  }

  #call(verb, args) {
    return new Promise((resolve, reject) => {
      const number = this.#server.numberOf(verb, args);
      const fault = this.#nextFault(verb, number);
      if (fault !== undefined) this.#history.note(this.#loop.name, `${verb}: ${fault.kind}`, { args });
      const request = { verb, args, process: this.process, link: this, times: fault?.kind === 'doubled request' ? 2 : 1 };
      request.answer = (error, reply) => this.#answer({ fault, number }, error, reply, resolve, reject);
      if (fault?.kind === 'lost request' || fault?.kind === 'refused') this.#fail(verb, reject);
      else if (fault?.kind === 'silent request' || fault?.kind === 'silent') this.#giveUp(verb, reject);
      else this.#server.receive(this.#arrival(fault, number), request);
    });
  }

  #arrival(fault, number) {
    const at = this.#world.now + this.#latency();
    if (fault?.kind === 'slow request') return at + fault.ms;
    if (fault?.kind === 'held up') return Math.max(at, this.#cuts[number].until);
    this.#requestedUntil[number] = this.#isOrdered ? Math.max(at, this.#requestedUntil[number]) : at;
    return this.#requestedUntil[number];
  }

  #answer({ fault, number }, error, reply, resolve, reject) {
    fault?.act?.();
    const cut = this.#cutNow(number);
    const settle = () => (error === undefined ? resolve(reply) : reject(error));
    if (fault?.kind === 'silent reply' || cut === 'silent') return this.#giveUp('the reply', reject);
    if (fault?.kind === 'lost reply' || cut === 'refused') return this.#fail('the reply', reject);
    let at = this.#world.now + this.#latency();
    if (cut === 'held up') at = Math.max(at, this.#cuts[number].until);
    if (fault?.kind === 'slow reply') at += fault.ms;
    else if (fault?.lateMs > 0) at += fault.lateMs;
    else if (this.#isOrdered) at = this.#answeredUntil[number] = Math.max(at, this.#answeredUntil[number]);
    this.#loop.arrive(at, settle);
  }

  #fail(what, reject, afterMs = this.#latency()) {
    const error = this.#server.unavailable(`The connection broke before ${what} was there.`);
    this.#loop.arrive(this.#world.now + afterMs, () => reject(error));
  }

  #giveUp(what, reject) {
    this.#fail(what, reject, this.#random.between(5000, 15_000));
  }

  #nextFault(verb, number) {
    const strike = this.#strikes.find(
      (candidate) => candidate.left > 0 && (candidate.verb ?? verb) === verb && (candidate.server ?? number) === number,
    );
    if (strike !== undefined) {
      strike.left -= 1;
      return strike;
    }
    const kind = this.#cutNow(number);
    return kind === undefined ? undefined : { kind };
  }

  #cutNow(number) {
    const { mode, from, until } = this.#cuts[number];
    return from <= this.#world.now && this.#world.now < until ? mode : undefined;
  }

  #latency() {
    return this.#random.chance(0.02) ? this.#random.between(5, 60) : this.#random.between(0.05, 2);
  }

  #watch(queue, listener) {
    const unwatch = this.#server.watch(queue, () => {
      if (this.#cutNow(this.#server.numberOf('watch', [queue])) !== undefined) return;
      this.#loop.arrive(this.#world.now + this.#latency(), () => {
        if (this.#unwatch.has(unwatch)) listener();
      });
    });
    this.#unwatch.add(unwatch);
    return () => {
      this.#unwatch.delete(unwatch);
      unwatch();
    };
  }
}
