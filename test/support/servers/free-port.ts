// A loopback port for a server that will be killed and restarted on it.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below the range from which kernels take the ports of outgoing connections (32768 and up on Linux, 49152 on macOS). Inside it, a
// client that keeps reconnecting to a dead server may be given that very port and connect to itself, and the server cannot come back.
const FIRST = 12_000;
const LAST = 22_000;
// Redis Cluster's nodes talk to each other on the port that is so much higher.
export const BUS_OFFSET = 10_000;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
