// A Redis Cluster of masters for tests, with the slots shared out evenly.
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from '../wait/pace.js';
import { askRedis, type RedisOptions, startRedis } from './redis.js';
import type { TestServer } from './server.js';

const SLOTS = 16_384;
const LOOK_MS = 50;
const PATIENCE_MS = paced(20_000);

export interface RedisCluster {
  /** Of the first node, which names the others. */
  url: string;
  nodes: TestServer[];
  /** Resolves when every node sees all of them and serves; a node that was restarted takes about 2 s to be trusted again. */
  whole(): Promise<void>;
  close(): Promise<void>;
}

export async function startRedisCluster(size = 3, options: RedisOptions = {}): Promise<RedisCluster> {
  // A node that is killed is given up after 2 s instead of 15.
  const settings = { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000', ...options.settings };
  const starts = await Promise.allSettled(Array.from({ length: size }, () => startRedis({ settings })));
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.close()));
  };
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    await form(nodes);
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

async function form(nodes: TestServer[]): Promise<void> {
  const share = Math.ceil(SLOTS / nodes.length);
  for (const [index, { port }] of nodes.entries()) {
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
