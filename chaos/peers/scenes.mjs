// The same play for BullMQ and for Holdfast: producers and workers only, on a Redis of its own each, under the same faults. Left out is
// what one of them has not: leaders, named locks and lock keys, lock threads; and stepped wall clocks, on which BullMQ's delays rest.
import { CHAOS, some } from '../cast.mjs';
import { KEEPING } from '../lock-times.mjs';
import { clusterPlace } from '../places/cluster.mjs';
import { onServer, startDurableRedis } from '../places/server.mjs';
import { openBullmqStore } from './bullmq-store.mjs';

const BULLMQ = (role) => ({ program: new URL(`bullmq-${role}.mjs`, import.meta.url) });
const OWN = () => ({});
/** BullMQ finds a dead worker's job at the second look after its lock has ended: up to 90 s with its defaults. */
const CALM_MS = 150_000;

const castWith = (programs) => ({
  ...CHAOS,
  acting: { ...CHAOS.acting, hasKeys: false, hasUnique: false, hasSchedule: false, hasGroups: false },
  parts: [...some('producer', 2, programs('producer')), ...some('worker', 4, programs('worker'))],
});

const onBullmq = (names) =>
  onServer(names, {
    start: startDurableRedis,
    open: openBullmqStore,
    hasThreads: false,
    connect: (ways, name) => ways.urlFor(name),
  });

const onBullmqCluster = (names, note) =>
  clusterPlace(names, note, {
    open: openBullmqCluster,
    hasThreads: false,
    connect: (ways, name) => ways.clusterFor(name).options.main,
  });

const openBullmqCluster = (url) => {
  const { hostname: host, port } = new URL(url);
  return openBullmqStore({ cluster: [{ host, port: Number(port) }] });
};

/** `locks`: both with their defaults, or both with the short ones of `npm run chaos`. */
export function scenesWith({ locks, store }) {
  const shared = { keeping: locks === 'short' ? KEEPING : {}, hasClocks: false, hasThreads: false, calmMs: CALM_MS };
  return {
    bullmq: { ...shared, cast: castWith(BULLMQ), place: store === 'redis' ? onBullmq : onBullmqCluster, isFenced: false },
    holdfast: { ...shared, cast: castWith(OWN) },
  };
}
