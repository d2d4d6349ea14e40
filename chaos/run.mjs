// One run: everything is set up, the nemesis rages, then there is calm and what was acknowledged must come to its end. All that happened is
// in the history; whether it was right is the judge's business.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CHAOS } from './cast.mjs';
import { Crew } from './crew.mjs';
import { clockFaults, Clocks } from './faults/clocks.mjs';
import { processFaults } from './faults/processes.mjs';
import { CHILD_QUEUE, LETTER_QUEUE } from './flows.mjs';
import { openHistory } from './history.mjs';
import { jobName } from './job-name.mjs';
import { KEEPING } from './lock-times.mjs';
import { Nemesis } from './nemesis.mjs';
import { onCluster } from './places/cluster.mjs';
import { onReplicatedRedis } from './places/replicated.mjs';
import { onPostgres, onRedis } from './places/server.mjs';
import { onSqlite } from './places/sqlite.mjs';
import { Random } from './random.mjs';
import { Resource } from './resource.mjs';
import { endSchedules } from './schedules.mjs';
import { Settlements } from './settlements.mjs';

const PLACES = {
  sqlite: onSqlite,
  postgres: onPostgres,
  redis: onRedis,
  'redis-cluster': onCluster,
  replicated: onReplicatedRedis,
};
const FORGETFUL = fileURLToPath(new URL('actors/forgetful-store.mjs', import.meta.url));
const UNFINISHED = ['waiting', 'prioritized', 'delayed', 'active', 'waiting-children'];
const START_MS = 60_000;

/** What `npm run chaos` plays, and what another play says otherwise. */
const SCENE = {
  cast: CHAOS,
  keeping: KEEPING,
  place: undefined,
  hasClocks: true,
  hasThreads: true,
  isFenced: true,
  /** After the last fault, for all that was acknowledged. */
  calmMs: 60_000,
  /** `beside({ crew, place })` does something while the nemesis rages; it answers how to stop. */
  beside: undefined,
};

/** The history goes to `folder`. Answers remarks about what could not be done. `onProgress` is called once a second. */
export async function run(settings, folder, onProgress, scene = {}) {
  const { keeping, hasThreads, isFenced, beside, ...own } = { ...SCENE, ...scene };
  const { cast, hasClocks, remark } = scheduleOrClocks({ ...SCENE, ...scene }, settings);
  const random = new Random(settings.seed);
  const note = openHistory(folder, 'conductor');
  const undo = [];
  const undoAll = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  const stopEarly = () => void undoAll().finally(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stopEarly);
  try {
    const { store, failover, seed, ms, paceMs, crashGraceMs } = settings;
    note('begin', { store, failover, seed, minutes: ms / 60_000 });
    const resource = new Resource(note, { isFenced });
    const socket = join(folder, 'resource');
    await resource.open(socket);
    undo.push(() => resource.close());

    const kept = { ...keeping, ...(crashGraceMs === undefined ? {} : { crashGraceMs }) };
    const stage = { cast, folder, resource: socket, note, random: new Random(random.between(1, 2 ** 30)), keeping: kept };
    const crew = new Crew(stage);
    const openPlace = own.place ?? PLACES[failover ? 'replicated' : store];
    const place = await openPlace(crew.names(), note);
    undo.push(() => place.close());
    const calmMs = Math.max(own.calmMs, place.calmMs ?? 0);
    const remarks = [...place.remarks, ...remark];
    // Only where the store keeps families.
    const hasFlows = cast.acting.hasFlows === true && place.store().capabilities?.families === true;
    stage.cast = { ...cast, acting: { ...cast.acting, hasFlows } };
    const queues = hasFlows ? [...cast.queues, CHILD_QUEUE] : cast.queues;
    stage.connectionFor = settings.defects ? (name) => forgetful(place.connectionFor(name)) : place.connectionFor;
    if (hasClocks)
      stage.clock = await Clocks.in(folder, crew.names()).catch(
        ({ message }) => void remarks.push(`No clock is stepped. ${message}`),
      );
    const settlements = new Settlements(place.store, queues, note);
    undo.push(() => settlements.stop());
    undo.push(() => crew.end());
    await crew.startAll();
    await anySettled(settlements);

    const clocks = stage.clock === undefined ? [] : clockFaults(crew, stage.clock);
    const faults = [...processFaults(crew, { hasThreads }), ...clocks, ...place.faults(crew)];
    const nemesis = new Nemesis({ faults, random, note });
    undo.push(reportOn(nemesis, settlements, onProgress));
    const stopBeside = await beside?.({ crew, place });
    if (stopBeside !== undefined) undo.push(stopBeside);
    await nemesis.rage(ms, paceMs);
    await stopBeside?.();
    place.heal();
    note('calm', { faults: nemesis.counts });
    await crew.dismiss('producer');
    if (cast.acting.hasSchedule) await endSchedules(place.store, cast.queues, calmMs, note);
    note('drained', { left: await drained(place.store, queues, calmMs) });
    // Before they leave and hand back what they hold.
    for (const queue of queues) await noteJobs(place.store(), queue, note);
    if (hasFlows) await noteLetters(place.store(), note);
    await crew.dismiss();
    await settlements.stop();
    await settlements.read();
    return remarks;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stopEarly);
    await undoAll();
  }
}

/**
 * A file has one clock, that of its host. If the clocks of single processes are stepped, its slots are where the clocks say, and cannot be
 * judged: the seed decides which of the two is done.
 */
function scheduleOrClocks({ cast, hasClocks }, { store, seed }) {
  if (store !== 'sqlite' || !hasClocks || !cast.acting.hasSchedule) return { cast, hasClocks, remark: [] };
  if (seed % 2 === 1)
    return { cast, hasClocks: false, remark: ['No clock is stepped, for a schedule runs. An even seed steps clocks.'] };
  // The times of starts are those of the stepped clocks too.
  const acting = { ...cast.acting, hasSchedule: false, hasRate: false };
  return { cast: { ...cast, acting }, hasClocks, remark: ['No schedule runs, for clocks are stepped. An odd seed runs one.'] };
}

/** The same store with defects. */
function forgetful(connection) {
  const options = typeof connection === 'string' ? { main: connection, thread: connection } : connection.options;
  return { module: FORGETFUL, options };
}

/** Answers how to stop. */
function reportOn(nemesis, settlements, onProgress) {
  const began = performance.now();
  const tell = () => {
    const ms = performance.now() - began;
    onProgress({ ms, faults: nemesis.count, current: nemesis.current, settled: settlements.count });
  };
  const timer = setInterval(tell, 1000);
  return () => clearInterval(timer);
}

/** Faults that strike before anything works say nothing. */
async function anySettled(settlements) {
  const deadline = performance.now() + START_MS;
  while (settlements.count === 0) {
    if (performance.now() > deadline) throw new Error(`No job was finished within ${START_MS} ms, before the first fault.`);
    await sleep(50);
  }
}

/** How many jobs are left when nothing is, or when the time is over. */
async function drained(store, queues, calmMs) {
  const deadline = performance.now() + calmMs;
  for (;;) {
    const left = await Promise.all(queues.map((queue) => leftIn(store(), queue)));
    const all = left.reduce((sum, count) => sum + count, 0);
    if (all === 0 || performance.now() > deadline) return all;
    await sleep(100);
  }
}

async function leftIn(store, queue) {
  const counts = await store
    .status(queue)
    .then((status) => status.counts)
    .catch(() => undefined);
  return UNFINISHED.reduce((sum, list) => sum + (counts === undefined ? 1 : (counts[list] ?? 0)), 0);
}

async function noteLetters(store, note) {
  const { jobs } = await store.jobs(LETTER_QUEUE, { lists: ['waiting'], start: 0, end: -1, asc: true });
  note('letters', { origins: jobs.map(({ origin }) => jobName(origin.queue, origin.id)) });
}

/** Where every job is that the store still has. */
async function noteJobs(store, queue, note) {
  for (const list of [...UNFINISHED, 'completed', 'failed']) {
    const { jobs } = await store.jobs(queue, { lists: [list], start: 0, end: -1, asc: true });
    note('kept', {
      list,
      jobs: jobs.map(({ id, data }) => ({ id: jobName(queue, id), key: JSON.parse(data).key ?? jobName(queue, id) })),
    });
  }
}
