// A Redis Cluster of three primaries with a replica each, and slots that fail over: in good order, which loses nothing; after the replica was cut
// off, which loses what it had not got; or because the Cluster itself finds that a primary is dead. The queues of flows lie on different nodes.
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from 'holdfast';
import { networkFaults } from '../faults/network.mjs';
import { askRedis, follows, startRedisCluster } from '../support.mjs';
import { Ways } from '../ways.mjs';

/** With this prefix, the roots, the children and the letters of flows lie on one node each. */
const PREFIX = 'slots';
const SHARDS = 3;
const SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'repl-diskless-sync-delay': '0',
  // The other slots go on serving while one fails over.
  'cluster-require-full-coverage': 'no',
};
/** How long the replica gets no writes before it takes over. */
const CUT_MS = [100, 1500];
const PATIENCE_MS = 20_000;
/** A request to take over in good order is given up by the Cluster after 5 s, and may be made again. */
const ASK_AGAIN_MS = 6000;
const LOOK_MS = 50;
/** The second net asks after the children of parents that have waited for a minute: see the docs of flows. */
const CALM_MS = 150_000;

export async function onCluster(names, note) {
  return clusterPlace(names, note, {
    open: (url) => openStore({ url, prefix: PREFIX }),
    connect: (ways, name) => ways.clusterFor(name, { prefix: PREFIX }),
  });
}

/** `open`: how the conductor looks at the store from beside. `connect`: what a process gets to reach the Cluster by. */
export async function clusterPlace(names, note, { open, connect, hasThreads = true }) {
  const cluster = await startRedisCluster(SHARDS, { replicas: true, settings: SETTINGS });
  const shards = Array.from({ length: SHARDS }, (_, n) => new Shard(cluster.nodes[n], cluster.nodes[SHARDS + n], note));
  const ways = await Ways.to(cluster.nodes, names, { hasThreads });
  const store = await open(cluster.url);
  // One slot at a time: a Cluster that has lost two of three primaries elects none.
  const fault = (kind, weight, strike) => ({
    ...{ kind, weight, target: () => 'server' },
    strike: (_, random) => strike(random.of(shards), random.between(...CUT_MS)),
  });
  return {
    remarks: ['What a replica had not got when it took over is lost, and counted as such.'],
    calmMs: CALM_MS,
    connectionFor: (name) => connect(ways, name),
    faults: (crew) => [
      ...networkFaults(crew, ways),
      fault('failover of a slot, in good order', 10, (shard) => shard.swap()),
      fault('failover of a slot, its replica cut off before', 10, (shard, ms) => shard.takeOver(ms)),
      fault('failover of a slot, its primary killed', 8, (shard, ms) => shard.takeOver(ms, { killed: true })),
      fault('failover of a slot by the Cluster', 6, (shard) => shard.elect()),
    ],
    store: () => store,
    heal: () => ways.heal(),
    close: async () => {
      await store.close();
      await ways.close();
      await cluster.close();
    },
  };
}

/** A primary and its replica, which change places. */
class Shard {
  #primary;
  #replica;
  #note;

  constructor(primary, replica, note) {
    this.#primary = primary;
    this.#replica = replica;
    this.#note = note;
  }

  /** In good order: the primary stops, the replica gets the rest, and takes over. Nothing is lost. */
  async swap() {
    const ask = () => askRedis(this.#replica.port, 'CLUSTER FAILOVER');
    await ask();
    await this.#untilTaken(ask);
    await this.#exchange();
  }

  /** The replica gets no writes for `ms`, and then takes over without asking. */
  async takeOver(ms, { killed = false } = {}) {
    const { port } = this.#replica;
    // A replica whose primary refuses its password cannot come back.
    await askRedis(port, 'CONFIG SET masterauth refused');
    await askRedis(this.#primary.port, 'CLIENT KILL TYPE replica');
    await sleep(ms);
    if (killed) await this.#primary.kill();
    await askRedis(port, 'CLUSTER FAILOVER TAKEOVER');
    this.#note('promoted', { how: killed ? 'killed' : 'alive', lagMs: ms });
    await askRedis(port, 'CONFIG SET masterauth ""');
    await this.#untilTaken();
    await this.#exchange();
  }

  /** The Cluster finds that the primary is dead, and elects its replica. */
  async elect() {
    await this.#primary.kill();
    await this.#untilTaken();
    this.#note('promoted', { how: 'elected' });
    await this.#exchange();
  }

  async #untilTaken(ask) {
    const began = performance.now();
    for (let askedAt = began; !(await this.#hasTaken()); ) {
      const now = performance.now();
      if (now - began > PATIENCE_MS) throw new Error(`The replica has not taken over after ${PATIENCE_MS} ms.`);
      if (ask !== undefined && now - askedAt > ASK_AGAIN_MS) {
        askedAt = now;
        await ask();
      }
      await sleep(LOOK_MS);
    }
  }

  async #hasTaken() {
    return (await askRedis(this.#replica.port, 'INFO replication').catch(String)).includes('role:master');
  }

  /** The old primary follows the new one. */
  async #exchange() {
    [this.#primary, this.#replica] = [this.#replica, this.#primary];
    if (!this.#replica.isRunning) await this.#replica.restart();
    await follows(this.#replica);
  }
}
