// A backlog worked off by one and by two worker processes, with a handler that does nothing: jobs a second, processor time for each, and
// how two share the work. What ends too late is stopped, and counts with what it has done.
import { once } from 'node:events';
import { withPlace } from '../places.mjs';
import { now } from '../clock.mjs';
import { serverCpuMs } from '../servers.mjs';
import { withActors } from '../stage.mjs';

/** Until the first job is done: with 50,000 waiting, @boringnode/queue on SQLite takes half a minute. */
const PATIENCE_MS = 60_000;
/** The clock starts when this share is done: code is compiled, statements are prepared, the lock thread is up. */
const WARM_UP = 0.1;
/** In memory, the usual backlog is gone in a quarter of a second, which shows the compiler at work rather than the code. */
const TIMES_AS_MANY = { memory: 10 };

export const backlog = {
  name: 'backlog',
  cases: ({ store, settings }) => {
    // A store in memory is reached by its own process alone.
    const processes = store === 'memory' ? [1] : settings.processes;
    return processes.flatMap((count) => settings.concurrencies.map((concurrency) => ({ processes: count, concurrency })));
  },
  measure: ({ store, contestant, settings, case: { processes, concurrency } }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const first = await start(contestant, place);
        const jobs = settings.jobs * (TIMES_AS_MANY[store] ?? 1);
        await first.call('fill', { count: jobs });
        const actors = [first];
        while (actors.length < processes) actors.push(await start(contestant, place));
        const run = await workOff(store, actors, concurrency, jobs, settings.limitMs);
        return figures(run, processes, concurrency);
      }),
    ),
};

async function workOff(store, actors, concurrency, jobs, limitMs) {
  const reports = new Map();
  let warm;
  const finished = new Promise((resolve) => {
    for (const actor of actors) {
      actor.on('progress', (report) => {
        reports.set(actor, report);
        const so = sum(reports, store);
        if (so.done >= jobs * WARM_UP) warm ??= so;
        if (so.done >= jobs) resolve();
      });
    }
  });
  const cold = { done: 0, cpuMs: 0, storeMs: serverCpuMs(store) };
  const working = Promise.all(actors.map((actor) => actor.call('work', { concurrency, count: jobs })));
  // Work that cannot begin rejects here; work that has begun goes on by itself.
  await Promise.race([
    once(actors[0], 'progress'),
    finished,
    late(PATIENCE_MS),
    working.then(() => new Promise(() => undefined)),
  ]);
  await Promise.race([finished, late(limitMs)]);
  if (reports.size === 0) throw new Error(`No job was done within ${PATIENCE_MS / 1000} s.`);
  const end = { ...sum(reports, store), stoppedAt: now() };
  if (end.done < jobs) end.at = end.stoppedAt;
  // Who is done before it could tell twice, or before both processes could, is measured from its first job on.
  const from = warm !== undefined && warm.done < end.done && warm.at < end.at ? warm : { ...cold, at: firstOf(reports) };
  const done = end.done - from.done;
  return {
    perSecond: (done / (end.at - from.at)) * 1000,
    workerMicros: ((end.cpuMs - from.cpuMs) / done) * 1000,
    storeMicros: from.storeMs === undefined ? undefined : ((end.storeMs - from.storeMs) / done) * 1000,
    smallestShare: Math.min(...actors.map((actor) => reports.get(actor)?.done ?? 0)) / end.done,
  };
}

/** What all processes have done, and when the last of it was done. */
function sum(reports, store) {
  const told = [...reports.values()];
  return {
    done: told.reduce((total, { done }) => total + done, 0),
    cpuMs: told.reduce((total, { cpuMs }) => total + cpuMs, 0),
    at: Math.max(...told.map(({ last }) => last)),
    storeMs: serverCpuMs(store),
  };
}

function firstOf(reports) {
  return Math.min(...[...reports.values()].map(({ first }) => first));
}

function figures({ perSecond, workerMicros, storeMicros, smallestShare }, processes, concurrency) {
  const where = `concurrency ${concurrency}${processes === 1 ? '' : `, ${processes} processes`}`;
  const lines = [{ what: `backlog, ${where}`, unit: 'jobs/s', better: 'more', value: perSecond }];
  if (processes > 1) lines.push({ what: `smaller share, ${where}`, unit: '%', better: 'more', value: smallestShare * 100 });
  else {
    lines.push({ what: `worker CPU a job, ${where}`, unit: 'µs', better: 'less', value: workerMicros });
    if (storeMicros !== undefined)
      lines.push({ what: `store CPU a job, ${where}`, unit: 'µs', better: 'less', value: storeMicros });
  }
  return lines;
}

function late(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
