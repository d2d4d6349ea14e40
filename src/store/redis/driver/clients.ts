// Helpers for ioredis clients besides calls: recording errors, waiting with a deadline, and dropping a client at once.
import { isError } from '../../../errors.js';
import type { Client, ClusterClient, NodeClient } from './driver.js';
import { forgetCommand, unavailable } from './errors.js';

/** Returns all servers that a client is connected to: one, or the primaries of a cluster. */
export function serversOf(client: Client): Client[] {
  return client.isCluster ? (client as ClusterClient).nodes('master') : [client];
}

const errors = new WeakMap<Client, Error>();

/** Records the errors of a client. ioredis prints errors that have no listener. */
export function listenForErrors(client: Client): void {
  const note = (error: unknown): void => {
    forgetCommand(error);
    // An error that the server sent stays recorded: it explains more than the end of the connection that follows.
    if (isError(error) && errors.get(client)?.name !== 'ReplyError') errors.set(client, error);
  };
  client.on('error', note);
  if (client.isCluster) client.on('node error', note);
}

export function lastErrorOf(client: Client): Error | undefined {
  return errors.get(client);
}

/** Lets the process exit while sockets are open. A caller that waits for a reply keeps the process alive with a timer (link.ts). */
export function letProcessEnd(client: Client): void {
  if (client.isCluster) client.on('+node', (node) => letProcessEnd(node as Client));
  else client.on('connect', () => void client.stream?.unref());
}

/**
 * Keeps the connections to replicas out of READONLY mode, in which ioredis makes them. When the connections to all primaries have ended,
 * ioredis asks any replica that is left. In that mode, a replica runs our scripts itself: it reads old data, and refuses the first write
 * with READONLY, which ioredis does not follow up. Otherwise, a replica redirects each call to the primary, and ioredis reads the map of
 * the slots anew.
 */
export function letReplicasRedirect(cluster: Client): void {
  cluster.on('+node', (node) => {
    (node as NodeClient).readonly = () => Promise.resolve('OK');
  });
}

/** Closes a client at once, without QUIT: if the server does not reply, QUIT would hold the socket, and its waiting caller, for minutes. */
export function drop(client: Client): void {
  // Do not disconnect a client that has ended: ioredis would start a timer that only the end of a socket stops. The timer would keep the
  // process alive until it fires.
  if (client.status === 'end') return;
  const nodes = client.isCluster ? (client as ClusterClient).nodes('all') : [client];
  client.disconnect();
  for (const node of nodes) node.stream?.destroy();
}

/**
 * Runs `work`, and drops the client if `work` takes longer than `ms` or fails. It does not wait for `work` after that: a cluster client
 * that is dropped never settles the calls to a node that does not reply.
 */
export async function withinDeadline<T>(client: Client, ms: number, work: () => Promise<T>): Promise<T> {
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      // If the event loop was blocked, the reply may be in the socket, unread: wait one more turn.
      setImmediate(() => {
        if (over) return;
        reject(unavailable(`Redis did not answer within ${ms} ms while connecting.`, lastErrorOf(client)));
        drop(client);
      });
    }, ms);
  });
  try {
    return await Promise.race([work(), late]);
  } catch (error) {
    drop(client);
    throw error;
  } finally {
    over = true;
    clearTimeout(timer);
  }
}
