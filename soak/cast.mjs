// Who is on the stage of a soak: a worker and a producer that live from the beginning to the end and are looked at, and others that the
// nemesis may kill, so that there is always somebody to take from and to lose to. Quieter than chaos: an hour of it is for three stores
// side by side on two cores, and its history is read as a whole.
import { part, some } from '../chaos/cast.mjs';

const observed = (role, leak) =>
  part(role, `${role}-observed`, {
    program: new URL(`actors/${role}.mjs`, import.meta.url),
    spared: true,
    execArgv: ['--expose-gc'],
    details: { leak },
  });

/** `leak`: { everyMs } when the observed ones shall take something now and then and never give it back. */
export function soakCast(leak) {
  return {
    queues: ['mail', 'reports', 'images'],
    acting: {
      paceMs: 500,
      restMs: [300, 2000],
      beatMs: [200, 1000],
      kept: { removeOnComplete: { count: 100 }, removeOnFail: { count: 50 } },
      hasKeys: true,
      watch: { lookMs: 25, writeMs: 250 },
    },
    parts: [
      observed('worker', leak),
      observed('producer', leak),
      ...some('producer', 1),
      ...some('worker', 1),
      ...some('leader', 1),
      ...some('locker', 1),
    ],
  };
}
