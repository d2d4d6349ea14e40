// Two Redis servers, the second a replica that lags, and a hand that promotes it: the primary is killed, or goes on for those who are
// still connected while everybody new is sent to the other one. Afterwards the old one is a replica of the new one.
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from 'holdfast';
import { networkFaults } from '../faults/network.mjs';
import { askRedis, FaultProxy, startRedis } from '../support.mjs';
import { Ways } from '../ways.mjs';

/** Replication is asynchronous: this is how much of the past a promoted replica may lack. On loopback it would lack next to nothing. */
const LAG_MS = 300;
const SETTINGS = { appendonly: 'yes', appendfsync: 'always', 'repl-diskless-sync-delay': '0' };
const PATIENCE_MS = 20_000;

export async function onReplicatedRedis(names, note) {
  let primary = await startRedis({ settings: SETTINGS });
  let replica = await startRedis({ settings: SETTINGS });
  let line = await follow(replica, primary);
  const ways = await Ways.to([primary], names);
  let store = await openStore(primary.url);

  async function promote(how) {
    if (how === 'killed') await primary.kill();
    const before = primary;
    await line.close();
    await askRedis(replica.port, 'REPLICAOF NO ONE');
    note('promoted', { how, lagMs: LAG_MS });
    [primary, replica] = [replica, before];
    ways.aim(primary);
    // Two that take writes: whoever is connected to the old one loses it only now.
    if (how === 'alive') await sleep(LAG_MS);
    for (const proxy of ways.of()) proxy.cut();
    const old = store;
    store = await openStore(primary.url);
    void old.close().catch(() => undefined);
    if (!replica.isRunning) await replica.restart();
    line = await follow(replica, primary);
  }

  return {
    remarks: [`The replica lags by ${LAG_MS} ms. What it had not got when it was promoted is lost, and counted as such.`],
    connectionFor: (name) => ways.connectionFor(name),
    faults: (crew) => [
      ...networkFaults(crew, ways),
      { kind: 'failover, the primary killed', weight: 14, target: () => 'server', strike: () => promote('killed') },
      { kind: 'failover, the primary alive', weight: 14, target: () => 'server', strike: () => promote('alive') },
    ],
    store: () => store,
    heal: () => ways.heal(),
    close: async () => {
      await store.close();
      await ways.close();
      await line.close();
      await Promise.all([primary.close(), replica.close()]);
    },
  };
}

/** Through a proxy that delays what the primary sends. */
async function follow(replica, primary) {
  const line = await FaultProxy.start(primary);
  await askRedis(replica.port, `REPLICAOF 127.0.0.1 ${line.port}`);
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await askRedis(replica.port, 'INFO replication').catch(String)).includes('master_link_status:up')) {
    if (performance.now() > deadline) throw new Error(`The replica does not follow its primary after ${PATIENCE_MS} ms.`);
    await sleep(50);
  }
  line.delay(LAG_MS, 'replies');
  return line;
}
