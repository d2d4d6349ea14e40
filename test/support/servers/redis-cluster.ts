// A Redis Cluster for tests, with the slots shared out evenly among its primaries, and with a replica of each if asked for.
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from '../wait/pace.js';
import { askRedis, type RedisOptions, startRedis } from './redis.js';
import type { TestServer } from './server.js';

const SLOTS = 16_384;
const LOOK_MS = 50;
const PATIENCE_MS = paced(20_000);

export interface RedisClusterOptions extends RedisOptions {
  /** True: each primary has a replica. */
  replicas?: boolean;
}

export interface RedisCluster {
  /** Of the first node, which names the others. */
  url: string;
  /** The primaries as the cluster began, then their replicas in the same order. */
  nodes: TestServer[];
  /** Resolves when every node sees all of them and serves; a node that was restarted takes about 2 s to be trusted again. */
  whole(): Promise<void>;
  close(): Promise<void>;
}

export async function startRedisCluster(size = 3, options: RedisClusterOptions = {}): Promise<RedisCluster> {
  // A node that is killed is given up after 2 s instead of 15.
  const settings = { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000', ...options.settings };
  const length = options.replicas === true ? 2 * size : size;
  const starts = await Promise.allSettled(Array.from({ length }, () => startRedis({ settings })));
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.close()));
  };
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    await form(nodes, size);
    return { url: (nodes[0] as TestServer).url, nodes, whole: () => whole(nodes), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function order(port: number, ...commands: string[]): Promise<void> {
  const replies = await askRedis(port, ...commands);
  if (replies.includes('-ERR')) throw new Error(`A node refuses to join the cluster: ${replies}`);
}

async function form(nodes: TestServer[], size: number): Promise<void> {
  const share = Math.ceil(SLOTS / size);
  for (const [index, { port }] of nodes.slice(0, size).entries()) {
    const first = index * share;
    const slots = Array.from({ length: Math.min(share, SLOTS - first) }, (_, n) => first + n);
    await order(port, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`, `CLUSTER ADDSLOTS ${slots.join(' ')}`);
  }
  // Not before all have their epoch: a node that was met by another is refused one.
  for (const { port } of nodes) {
    const others = nodes.filter((node) => node.port !== port);
    await order(port, ...others.map((other) => `CLUSTER MEET 127.0.0.1 ${other.port}`));
  }
  await whole(nodes);
  await Promise.all(nodes.slice(size).map((replica, index) => follow(replica, nodes[index] as TestServer)));
}

async function follow(replica: TestServer, primary: TestServer): Promise<void> {
  const id = /[0-9a-f]{40}/.exec(await askRedis(primary.port, 'CLUSTER MYID'))?.[0];
  await order(replica.port, `CLUSTER REPLICATE ${id}`);
  await follows(replica);
}

/** Resolves when a node is a replica whose primary sends it all writes. */
export async function follows({ port }: TestServer): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await askRedis(port, 'INFO replication').catch(String)).includes('master_link_status:up')) {
    if (performance.now() > deadline) throw new Error(`The node at ${port} follows no primary after ${PATIENCE_MS} ms.`);
    await sleep(LOOK_MS);
  }
}

async function whole(nodes: TestServer[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await Promise.all(nodes.map((node) => sees(node, nodes.length)))).every(Boolean)) {
    if (performance.now() > deadline) throw new Error(`The cluster is not whole after ${PATIENCE_MS} ms.`);
    await sleep(LOOK_MS);
  }
}

async function sees({ port }: TestServer, size: number): Promise<boolean> {
  const info = await askRedis(port, 'CLUSTER INFO').catch(String);
  return ['cluster_state:ok', `cluster_slots_ok:${SLOTS}`, `cluster_known_nodes:${size}`].every((line) =>
    info.includes(`${line}\r\n`),
  );
}
