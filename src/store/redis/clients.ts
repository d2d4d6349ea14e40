// What is done with clients besides calling them: listening, waiting with a deadline, and letting go at once.
import { isError } from '../../errors.js';
import type { Client, ClusterClient } from './driver.js';
import { forgetCommand, unavailable } from './errors.js';

/** All servers that a client is connected to: one, or the primaries of a cluster. */
export function serversOf(client: Client): Client[] {
  return client.isCluster ? (client as ClusterClient).nodes('master') : [client];
}

const errors = new WeakMap<Client, Error>();

/** ioredis prints errors that nobody listens to. */
export function listenForErrors(client: Client): void {
  const note = (error: unknown): void => {
    forgetCommand(error);
    // What the server said tells more than how the connection ended after it.
    if (isError(error) && errors.get(client)?.name !== 'ReplyError') errors.set(client, error);
  };
  client.on('error', note);
  if (client.isCluster) client.on('node error', note);
}

export function lastErrorOf(client: Client): Error | undefined {
  return errors.get(client);
}

/** The sockets do not keep the process alive. A caller that waits for a reply does that with a timer (link.ts). */
export function letProcessEnd(client: Client): void {
  if (client.isCluster) client.on('+node', (node) => letProcessEnd(node as Client));
  else client.on('connect', () => void client.stream?.unref());
}

/** At once: a goodbye to a server that does not answer would keep the socket, and whoever waits for it, for minutes. */
export function drop(client: Client): void {
  // ioredis would start a timer that only the end of the socket stops, and keep the process alive until it fires.
  if (client.status === 'end') return;
  const nodes = client.isCluster ? (client as ClusterClient).nodes('all') : [client];
  client.disconnect();
  for (const node of nodes) node.stream?.destroy();
}

/** Whatever `work` waits for ends when the client is dropped. */
export async function withinDeadline<T>(client: Client, ms: number, work: () => Promise<T>): Promise<T> {
  let late = false;
  let over = false;
  const timer = setTimeout(() => {
    // After a blocked loop the answer may lie in the socket, unread: one more turn.
    setImmediate(() => {
      if (over) return;
      late = true;
      drop(client);
    });
  }, ms);
  try {
    return await work();
  } catch (error) {
    drop(client);
    throw late ? unavailable(`Redis did not answer within ${ms} ms while connecting.`, error) : error;
  } finally {
    over = true;
    clearTimeout(timer);
  }
}
