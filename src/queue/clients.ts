// The workers and listeners of a queue in the shape of BullMQ, read from their sessions: all values are text.
import { LISTENER_NAME } from '../events/queue-events.js';
import type { SessionInfo } from '../store/contract/index.js';

/** The part that workers and listeners have in common. */
export interface ClientInfo extends Record<string, string> {
  /** The name of the queue. */
  name: string;
  /** `prefix:queue:w:worker` or `prefix:queue:qe`, with the queue in base64. */
  rawname: string;
  /** The id of its session. */
  id: string;
  /** `host:pid`. */
  addr: string;
  host: string;
  pid: string;
  /** Seconds since it started, and since the last renewal of its session. */
  age: string;
  idle: string;
}

export interface WorkerInfo extends ClientInfo {
  /** The option `name` of the worker. */
  worker: string;
  /** How many jobs it can run at once, and how many it holds. */
  slots: string;
  running: string;
}

export interface QueueNaming {
  name: string;
  prefix: string;
}

/** A paused worker takes no jobs, and is left out. */
export function workersOf(queue: QueueNaming, sessions: SessionInfo[]): WorkerInfo[] {
  const taking = sessions.filter(({ slots, expiresInMs }) => slots > 0 && expiresInMs > 0);
  return taking.map((session) => {
    const { owner, slots, locks } = session;
    const suffix = owner.name === '' ? '' : `:w:${owner.name}`;
    return {
      ...clientOf(queue, session, suffix),
      worker: owner.name,
      slots: String(slots),
      running: String(locks),
    };
  });
}

export function listenersOf(queue: QueueNaming, sessions: SessionInfo[]): ClientInfo[] {
  const listening = sessions.filter(
    ({ slots, owner, expiresInMs }) => slots === 0 && owner.name === LISTENER_NAME && expiresInMs > 0,
  );
  return listening.map((session) => clientOf(queue, session, ':qe'));
}

function clientOf({ name, prefix }: QueueNaming, session: SessionInfo, suffix: string): ClientInfo {
  const { id, since, durationMs, expiresInMs } = session;
  const { host, pid } = session.owner;
  const seconds = (ms: number): string => String(Math.max(0, Math.floor(ms / 1000)));
  return {
    id,
    name,
    rawname: `${prefix}:${Buffer.from(name).toString('base64')}${suffix}`,
    addr: `${host}:${pid}`,
    host,
    pid: String(pid),
    age: seconds(Date.now() - since),
    idle: seconds(durationMs - expiresInMs),
  };
}
