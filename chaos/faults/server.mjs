// What happens to a server that is alone.
import { setTimeout as sleep } from 'node:timers/promises';
import { ABOUT_A_LOCK, SHORTER_THAN_A_LOCK } from '../lock-times.mjs';
import { within } from '../nemesis.mjs';

/** `server()` is the one that serves at the moment. */
export function serverFaults(server) {
  const target = () => 'server';
  return [
    {
      kind: 'kill the server',
      weight: 4,
      target,
      strike: async (_, random) => {
        await server().kill();
        await sleep(random.between(100, 3000));
      },
      end: () => server().restart(),
    },
    { kind: 'restart the server', weight: 2, target, strike: () => server().restart() },
    {
      kind: 'pause the server, shorter than a lock',
      weight: 3,
      target,
      lasts: within(SHORTER_THAN_A_LOCK),
      strike: () => server().stop(),
      end: () => server().resume(),
    },
    {
      kind: 'pause the server, longer than a lock',
      weight: 1,
      target,
      lasts: within(ABOUT_A_LOCK),
      strike: () => server().stop(),
      end: () => server().resume(),
    },
  ];
}
