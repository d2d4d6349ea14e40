// What the tests start servers and break connections with, compiled once.
import { compileSupport } from '../scripts/compile-support.mjs';

const load = compileSupport(['redis', 'redis-cluster', 'postgres', 'proxy', 'programs'].map((name) => `servers/${name}.ts`));

export const { startRedis, askRedis } = await load('servers/redis.ts');
export const { startRedisCluster, follows } = await load('servers/redis-cluster.ts');
export const { startPostgres } = await load('servers/postgres.ts');
export const { FaultProxy } = await load('servers/proxy.ts');
export const { folderOf } = await load('servers/programs.ts');
