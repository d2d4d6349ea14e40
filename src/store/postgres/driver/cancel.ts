// Cancels a statement on the server whose caller has given up. Its connection is not used again, but the server goes on with the
// statement until it sends the reply, and holds its row locks. The repeated call would wait for those locks.
import { newSocket } from './address.js';
import type { PgClient } from './driver.js';

/** The number that marks a cancel request in the protocol. */
const CANCEL_REQUEST = 80_877_102;
const CANCEL_MS = 2000;

/**
 * Resolves when the server has taken the request, or cannot. The request names the connection by its number and its secret key. A
 * connection that was given up runs no other statement, so the request can hit nothing else, however late it arrives.
 */
export function cancelStatement({ processID, secretKey, host, port }: PgClient): Promise<void> {
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || port === undefined) return Promise.resolve();
  const request = Buffer.alloc(16);
  [request.length, CANCEL_REQUEST, processID, secretKey].forEach((value, index) => request.writeInt32BE(value, 4 * index));
  return new Promise((resolve) => {
    const socket = newSocket();
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.setTimeout(CANCEL_MS, () => socket.destroy());
    socket.unref();
    if (host?.startsWith('/') === true) socket.connect(`${host}/.s.PGSQL.${port}`);
    else socket.connect(port, host ?? 'localhost');
    // The server closes the connection after it has sent the signal.
    socket.end(request);
    socket.resume();
  });
}
