import { askRedis } from '../../chaos/support.mjs';

export async function redisSize({ server }) {
  const said = await askRedis(server.port, 'INFO memory', 'DBSIZE', 'CLIENT LIST');
  return {
    store: Number(/^used_memory:(\d+)/m.exec(said)[1]),
    keys: Number(/^:(\d+)/m.exec(said)[1]),
    // Less the one that asks.
    connections: said.match(/^(\$\d+\r\n)?id=\d+/gm).length - 1,
  };
}
