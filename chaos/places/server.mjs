// A server of our own behind proxies: PostgreSQL, or a Redis that syncs every write.
import { openStore } from 'holdfast';
import { networkFaults } from '../faults/network.mjs';
import { serverFaults } from '../faults/server.mjs';
import { startPostgres, startRedis } from '../support.mjs';
import { Ways } from '../ways.mjs';

export const onPostgres = (names) => onServer(() => startPostgres(), names);
/** For more connections than there should be. */
export const onRoomyPostgres = (names) => onServer(() => startPostgres({ settings: { max_connections: '300' } }), names);
export const onRedis = (names) => onServer(startDurableRedis, names);

export function startDurableRedis() {
  return startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
}

async function onServer(start, names) {
  const server = await start();
  const ways = await Ways.to(server, names);
  const store = await openStore(server.url);
  return {
    remarks: [],
    server,
    connectionFor: (name) => ways.connectionFor(name),
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
