// Connects to a host by its name. Node resolves names in the thread pool of the process, which user code may fill for seconds. Locks
// depend on a fast reconnect, so a lookup that takes too long falls back to the last known address.
import { lookup as lookUp, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP, Socket } from 'node:net';

type Callback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

const PATIENCE_MS = 500;

const known = new Map<string, [address: string | LookupAddress[], family: number | undefined]>();

/** Returns a socket for the driver, which calls `connect(port, host)` or `connect(path)` on it. */
export function newSocket(): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket) as (...target: unknown[]) => Socket;
  const toHost = (port: unknown, host: unknown): Socket =>
    typeof host === 'string' && isIP(host) === 0 ? connect({ port: Number(port), host, lookup }) : connect(port, host);
  return Object.assign(socket, { connect: toHost });
}

function lookup(host: string, options: LookupOptions, callback: Callback): void {
  const key = JSON.stringify([host, options]);
  const last = known.get(key);
  let answered = false;
  const answer: Callback = (error, address, family) => {
    if (answered) return;
    answered = true;
    clearTimeout(timer);
    callback(error, address, family);
  };
  const timer = last === undefined ? undefined : setTimeout(() => answer(null, ...last), PATIENCE_MS);
  const onAnswer: Callback = (error, address, family) => {
    if (error === null) known.set(key, [address, family]);
    answer(error, address, family);
  };
  lookUp(host, options, onAnswer);
}
