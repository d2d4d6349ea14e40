// A way to a server through a proxy, for one of two who would else go the same way. A cluster has a proxy for each node, and the one that
// is answered stands before the node with the queue.
import type { Connection } from 'holdfast';
import { onTestFinished } from 'vitest';
import type { Engine } from '../scenes/scene.js';
import { FaultProxy } from './proxy.js';
import { askRedis } from './redis.js';

export interface Detour {
  proxy: FaultProxy;
  /** What goes through it. */
  connection: Connection;
}

export async function detour(engine: Engine, url: string): Promise<Detour> {
  const port = Number(new URL(url).port);
  if (engine !== 'redis-cluster') {
    const proxy = await newProxy(port);
    return { proxy, connection: proxy.url(url) };
  }
  const prefix = new URL(url).searchParams.get('prefix');
  const nodes = await nodesOf(port);
  const slot = Number(/:(\d+)/.exec(await askRedis(port, `CLUSTER KEYSLOT {${prefix}:work}`))?.[1]);
  const proxies = await Promise.all(nodes.map((node) => newProxy(node.port)));
  const natMap = Object.fromEntries(
    nodes.map((node, index) => [`127.0.0.1:${node.port}`, { host: '127.0.0.1', port: proxies[index]?.port }]),
  );
  const proxy = proxies[nodes.findIndex(({ first, last }) => first <= slot && slot <= last)];
  if (proxy === undefined) throw new Error(`No node of the cluster has slot ${slot}.`);
  return { proxy, connection: { url: proxy.url(url), natMap } };
}

async function newProxy(port: number): Promise<FaultProxy> {
  const proxy = await FaultProxy.start({ port });
  onTestFinished(() => proxy.close());
  return proxy;
}

async function nodesOf(port: number): Promise<{ port: number; first: number; last: number }[]> {
  const nodes = await askRedis(port, 'CLUSTER NODES');
  return Array.from(nodes.matchAll(/127\.0\.0\.1:(\d+)@.* (\d+)-(\d+)/g), ([, node, first, last]) => ({
    port: Number(node),
    first: Number(first),
    last: Number(last),
  }));
}
