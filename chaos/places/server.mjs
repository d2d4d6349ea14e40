// A server of our own behind proxies: PostgreSQL, or a Redis that syncs every write.
import { openStore } from 'holdfast';
import { networkFaults } from '../faults/network.mjs';
import { serverFaults } from '../faults/server.mjs';
import { startPostgres, startRedis } from '../support.mjs';
import { Ways } from '../ways.mjs';

export const onPostgres = (names) => onServer(names, { start: () => startPostgres() });
/** For more connections than there should be. */
export const onRoomyPostgres = (names) =>
  onServer(names, { start: () => startPostgres({ settings: { max_connections: '300' } }) });
export const onRedis = (names) => onServer(names, { start: startDurableRedis });

export function startDurableRedis() {
  return startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
}

/** `connect`: what a process gets to reach the server by. `open`: whoever looks at the store from beside. */
export async function onServer(
  names,
  { start, open = openStore, hasThreads = true, connect = (ways, name) => ways.connectionFor(name) },
) {
  const server = await start();
  const ways = await Ways.to([server], names, { hasThreads });
  const store = await open(server.url);
  return {
    remarks: [],
    server,
    connectionFor: (name) => connect(ways, name),
    faults: (crew) => [...networkFaults(crew, ways), ...serverFaults(() => server)],
    /** Seen from beside, by a way that no fault disturbs but those of the server itself. */
    store: () => store,
    heal: () => ways.heal(),
    close: async () => {
      await store.close();
      await ways.close();
      await server.close();
    },
  };
}
