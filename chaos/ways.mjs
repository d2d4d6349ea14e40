// The network between each process and the server: for every part a proxy for its event loop and one for its lock thread, so that either
// can be broken alone.
import { fileURLToPath } from 'node:url';
import { FaultProxy } from './support.mjs';

const TWO_WAYS = fileURLToPath(new URL('../test/faults/fixtures/server-store.mjs', import.meta.url));

export class Ways {
  #proxies = new Map();
  #url;

  /** Without `hasThreads`, what would strike a lock thread strikes the event loop: all that there is. */
  static async to(server, names, { hasThreads = true } = {}) {
    const ways = new Ways();
    ways.#url = server.url;
    for (const name of names) {
      const main = await FaultProxy.start(server);
      ways.#proxies.set(name, { main, thread: hasThreads ? await FaultProxy.start(server) : main });
    }
    return ways;
  }

  urlFor(name) {
    return this.#proxies.get(name).main.url(this.#url);
  }

  connectionFor(name) {
    const { main, thread } = this.#proxies.get(name);
    return { module: TWO_WAYS, options: { main: main.url(this.#url), thread: thread.url(this.#url) } };
  }

  /** `which`: main, thread or both; of all parts when no name is given. */
  of(name, which = 'both') {
    const pairs = name === undefined ? [...this.#proxies.values()] : [this.#proxies.get(name)];
    const chosen = pairs.flatMap(({ main, thread }) => (which === 'both' ? [main, thread] : [which === 'main' ? main : thread]));
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
