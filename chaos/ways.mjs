// The network between each process and the server, or each node of a cluster: for every part a proxy for its event loop and one for its lock
// thread, so that either can be broken alone.
import { fileURLToPath } from 'node:url';
import { FaultProxy } from './support.mjs';

const TWO_WAYS = fileURLToPath(new URL('../test/faults/fixtures/server-store.mjs', import.meta.url));

export class Ways {
  /** By part: the proxies to each server, in the order of the servers. */
  #proxies = new Map();
  #servers;

  /** Without `hasThreads`, what would strike a lock thread strikes the event loop: all that there is. */
  static async to(servers, names, { hasThreads = true } = {}) {
    const ways = new Ways();
    ways.#servers = servers;
    const proxies = () => Promise.all(servers.map((server) => FaultProxy.start(server)));
    for (const name of names) {
      const main = await proxies();
      ways.#proxies.set(name, { main, thread: hasThreads ? await proxies() : main });
    }
    return ways;
  }

  urlFor(name) {
    return this.#urlOf(this.#proxies.get(name).main);
  }

  #urlOf([proxy]) {
    return proxy.url(this.#servers[0].url);
  }

  connectionFor(name) {
    const { main, thread } = this.#proxies.get(name);
    return { module: TWO_WAYS, options: { main: this.#urlOf(main), thread: this.#urlOf(thread) } };
  }

  /** The same for a cluster: the nodes name each other, and `natMap` says by which proxy each of them is reached. */
  clusterFor(name, options = {}) {
    const { main, thread } = this.#proxies.get(name);
    const at = (proxies) => ({ ...options, ...this.#clusterAt(proxies) });
    return { module: TWO_WAYS, options: { main: at(main), thread: at(thread) } };
  }

  #clusterAt(proxies) {
    const places = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
    return { cluster: places, natMap: Object.fromEntries(this.#servers.map(({ port }, n) => [`127.0.0.1:${port}`, places[n]])) };
  }

  /** `which`: main, thread or both; of all parts when no name is given. */
  of(name, which = 'both') {
    const pairs = name === undefined ? [...this.#proxies.values()] : [this.#proxies.get(name)];
    const chosen = pairs.flatMap(({ main, thread }) =>
      which === 'both' ? [...main, ...thread] : which === 'main' ? main : thread,
    );
    return [...new Set(chosen)];
  }

  aim(server) {
    for (const proxy of this.of()) proxy.aim(server);
  }

  heal() {
    for (const proxy of this.of()) proxy.heal();
  }

  async close() {
    await Promise.all(this.of().map((proxy) => proxy.close()));
  }
}
