// Who is compared: Holdfast, its peers, and the raw limit of each store (what the store itself can do without a queue around it).
// A contestant is a module with one function, `open({ url, queue, options })`, which answers
//   add(data), addBulk(list)                         resolve when the store has acknowledged them
//   work({ concurrency, lockMs }, handle, onDone)    consumes until `stop()` of its answer; `lockMs` asks for the shortest lock it can;
//                                                    with `file` and `threads`, where it can, that file is the handler
//   sessions(count)                                  of raw limits in `fleet` alone: makes them, and answers what renews the n-th
//   close()
// The option `removed` asks one with `removes: 'on request'` to remove finished jobs; one with `removes: 'always'` always does.
// It runs in a process of its own (contestant-process.mjs), so that its processor time can be read and another Node fits; in `fleet`, where
// only the server's time counts, in that of the driver.
export const STORES = ['redis', 'postgres', 'sqlite', 'memory'];

const SHARED = ['redis', 'postgres', 'sqlite'];
export const FINISHED = ['kept', 'removed'];

/** What the bare store can show of itself. Where it lives in the process that calls it, renewals of a fleet would not be those of many processes. */
const RAW_MEASURES = {
  redis: ['adding', 'backlog', 'latency', 'fleet'],
  postgres: ['adding', 'backlog', 'latency', 'fleet'],
  sqlite: ['adding', 'backlog', 'latency'],
  memory: ['adding', 'backlog'],
};

export const CONTESTANTS = [
  {
    id: 'holdfast',
    label: 'Holdfast',
    kind: 'ours',
    stores: STORES,
    module: 'contestants/holdfast.mjs',
    removes: 'on request',
  },
  {
    id: 'holdfast-prefetch',
    label: 'Holdfast, prefetch',
    kind: 'ours',
    stores: SHARED,
    module: 'contestants/holdfast.mjs',
    options: { prefetch: 500 },
    removes: 'on request',
    measures: ['backlog'],
  },
  {
    id: 'holdfast-groups',
    label: 'Holdfast, groups',
    kind: 'ours',
    stores: STORES,
    module: 'contestants/holdfast.mjs',
    // A hundred groups, none of which is ever full.
    options: { group: { concurrency: 1000 }, groups: 100 },
    removes: 'on request',
    measures: ['backlog'],
  },
  {
    id: 'bullmq',
    label: 'BullMQ',
    kind: 'peer',
    stores: ['redis', 'postgres'],
    module: 'peers/bullmq.mjs',
    package: 'bullmq',
    removes: 'on request',
  },
  {
    id: 'bull',
    label: 'Bull',
    kind: 'peer',
    stores: ['redis'],
    module: 'peers/bull.mjs',
    package: 'bull',
    removes: 'on request',
  },
  {
    id: 'bee-queue',
    label: 'bee-queue',
    kind: 'peer',
    stores: ['redis'],
    module: 'peers/bee-queue.mjs',
    package: 'bee-queue',
    removes: 'on request',
  },
  {
    id: 'graphile-tuned',
    label: 'graphile-worker tuned',
    kind: 'peer',
    stores: ['postgres'],
    module: 'peers/graphile-worker.mjs',
    package: 'graphile-worker',
    removes: 'always',
    options: { tuned: true },
    // One worker's local queue would take all ten jobs.
    skips: ['blocked'],
  },
  {
    id: 'graphile',
    label: 'graphile-worker',
    kind: 'peer',
    stores: ['postgres'],
    module: 'peers/graphile-worker.mjs',
    package: 'graphile-worker',
    removes: 'always',
  },
  {
    id: 'pg-boss',
    label: 'pg-boss',
    kind: 'peer',
    stores: ['postgres'],
    module: 'peers/pg-boss.mjs',
    package: 'pg-boss',
    newerNode: true,
  },
  {
    id: 'boringnode',
    label: '@boringnode/queue',
    kind: 'peer',
    stores: SHARED,
    module: 'peers/boringnode.mjs',
    package: '@boringnode/queue',
    removes: 'always',
    newerNode: true,
    // One queue manager for the whole process.
    onePerProcess: true,
  },
  ...STORES.map((store) => ({
    id: 'raw',
    label: 'raw limit',
    kind: 'raw',
    stores: [store],
    module: `contestants/raw-${store}.mjs`,
    measures: RAW_MEASURES[store],
  })),
  {
    id: 'raw-single',
    label: 'raw, 1 job a call',
    kind: 'raw',
    stores: ['redis'],
    module: 'contestants/raw-redis.mjs',
    options: { single: true },
    measures: ['backlog'],
  },
];

export function contestantsFor(store, measurement, peersAreThere) {
  return CONTESTANTS.filter(
    ({ stores, kind, measures, skips }) =>
      stores.includes(store) &&
      (measures?.includes(measurement) ?? true) &&
      !skips?.includes(measurement) &&
      (peersAreThere || kind !== 'peer'),
  );
}
