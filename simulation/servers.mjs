// The servers of a run: one, or two of which each has some of the queues and fails alone.
import { serverOf } from './queues.mjs';
import { Server } from './server.mjs';
import { underWay } from './split/mail.mjs';

/** Calls about a list of things with a queue each. Their caller sends those of one server. */
const OF_LISTS = new Set(['renew', 'checkSessions', 'closeSessions']);

export function serversFor({ random, plan, defect, engine, witness, ...parts }) {
  const failoverOf = (index) => plan.faults.find(({ what, server = 0 }) => what === 'failover' && server === index);
  const server = (index, name) => new Server({ ...parts, random, defect, engine, witness, failover: failoverOf(index), name });
  if (engine !== 'split') {
    const only = server(0);
    const books = only.engines.map(({ store, time }) => [witness.booksFor(store, time)]);
    only.keepBooks(books, { plan, defect });
    return only;
  }
  return new Servers([server(0, 'store'), server(1, 'store 2')], { plan, defect, witness });
}

/** Two servers, as the rest of the run sees one. */
class Servers {
  isSplit = true;
  hasFamilies = true;
  #servers;

  constructor(servers, { plan, defect, witness }) {
    this.#servers = servers;
    const failing = servers.findIndex(({ engines }) => engines.length > 1);
    // The books see both servers, and those of a replica see it beside the other server.
    const primaries = servers.map(({ engines }) => engines[0]);
    const books = witness.booksFor(viewOf(primaries), primaries[0].time);
    const seen = servers.map(() => [[books]]);
    if (failing !== -1) {
      const view = primaries.with(failing, servers[failing].engines[1]);
      const later = witness.booksFor(viewOf(view), primaries[0].time);
      seen[failing] = [[books], [later]];
      seen[1 - failing] = [[books, later]];
    }
    servers.forEach((server, index) => server.keepBooks(seen[index], { plan, defect }));
  }

  async open() {
    for (const server of this.#servers) await server.open();
  }

  close() {
    for (const server of this.#servers) server.close();
  }

  failOver(index) {
    this.#servers[index].failOver();
  }

  pause(ms, index) {
    this.#servers[index].pause(ms);
  }

  unavailable(message) {
    return this.#servers[0].unavailable(message);
  }

  numberOf(verb, [first]) {
    return serverOf(OF_LISTS.has(verb) ? first[0].queue : verb === 'openSession' ? first.queue : first);
  }

  watch(queue, listener) {
    return this.#servers[serverOf(queue)].watch(queue, listener);
  }

  receive(at, request) {
    this.#servers[this.numberOf(request.verb, request.args)].receive(at, request);
  }
}

/** Both servers, to read from. */
function viewOf(engines) {
  const verb =
    (name) =>
    (queue, ...args) =>
      engines[serverOf(queue)].store[name](queue, ...args);
  const reads = Object.fromEntries(
    ['jobs', 'status', 'locks', 'children', 'schedules', 'sessions'].map((name) => [name, verb(name)]),
  );
  const isUnderWay = () => new Set(engines.flatMap(({ memory }) => [...memory.queues.values()].flatMap(underWay)));
  return { ...reads, underWay: isUnderWay };
}
