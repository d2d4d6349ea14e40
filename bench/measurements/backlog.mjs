// A backlog worked off by one and by two worker processes, with a handler that does nothing or waits. Finished jobs are kept or
// removed. Jobs a second, processor time for each, and how two share the work. What ends too late is stopped, and
// counts with what it has done.
import { once } from 'node:events';
import { withPlace } from '../places.mjs';
import { now } from '../clock.mjs';
import { serverCpuMs } from '../servers.mjs';
import { show } from '../report/figures.mjs';
import { withActors } from '../stage.mjs';

/** Until the first job is done: with 50,000 waiting, @boringnode/queue on SQLite takes half a minute. */
const PATIENCE_MS = 60_000;
/**
 * The clock starts when this share of the jobs is done or of the time is over: code is compiled, statements are prepared, the lock
 * thread is up.
 */
const WARM_UP = 0.1;
/** In memory, the usual backlog is gone in a quarter of a second, which shows the compiler at work rather than the code. */
const TIMES_AS_MANY = { memory: 10 };
/** More of them would not fit into its process. */
const MOST_IN_MEMORY = 500_000;
/** With a handler that waits, a run without any cost of the queue would take so long. */
const WAITING_RUN_MS = 3000;

export const backlog = {
  name: 'backlog',
  cases: ({ store, settings }) => {
    const sizes = [...new Set(settings.jobs.map((jobs) => sizeIn(store, jobs)))];
    // Kept and removed one after the other, so that a slow minute of the machine hits both.
    return combinations({
      // A store in memory is reached by its own process alone.
      processes: store === 'memory' ? [1] : settings.processes,
      concurrency: settings.concurrencies,
      jobs: sizes,
      handlerMs: settings.handlerMs,
      finished: settings.finished,
    }).flatMap((each) => {
      if (each.handlerMs === 0) return [{ ...each, oneOfSizes: sizes.length > 1 }];
      // How many they are follows from the handler, not from a size.
      return each.jobs === sizes[0] ? [{ ...each, jobs: Math.min(each.jobs, jobsFor(each)) }] : [];
    });
  },
  fits: ({ contestant, case: { finished } }) => finished === 'kept' || contestant.removes !== undefined,
  measure: ({ store, contestant, settings, case: one }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const asked = one.finished === 'removed' && contestant.removes === 'on request';
        const each = asked ? { ...contestant, options: { ...contestant.options, removed: true } } : contestant;
        const first = await start(each, place);
        await first.call('fill', { count: one.jobs });
        const actors = [first];
        while (actors.length < one.processes) actors.push(await start(each, place));
        const limitMs = one.handlerMs === 0 ? settings.limitMs : Math.max(settings.limitMs, 2 * WAITING_RUN_MS);
        return figures(await workOff(store, actors, one, limitMs), one);
      }),
    ),
};

function sizeIn(store, jobs) {
  return Math.max(jobs, Math.min(jobs * (TIMES_AS_MANY[store] ?? 1), MOST_IN_MEMORY));
}

function jobsFor({ processes, concurrency, handlerMs }) {
  return Math.ceil((WAITING_RUN_MS / handlerMs) * concurrency * processes);
}

/** Each value of each list with each of the others; the last list changes fastest. */
function combinations(lists) {
  return Object.entries(lists).reduce(
    (found, [name, values]) => found.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
}

async function workOff(store, actors, { concurrency, jobs, handlerMs }, limitMs) {
  const reports = new Map();
  let warm;
  const finished = new Promise((resolve) => {
    for (const actor of actors) {
      actor.on('progress', (report) => {
        reports.set(actor, report);
        const so = sum(reports, store);
        if (so.done >= jobs * WARM_UP || so.at - firstOf(reports) >= limitMs * WARM_UP) warm ??= so;
        if (so.done >= jobs) resolve();
      });
    }
  });
  const cold = { done: 0, cpuMs: 0, storeMs: serverCpuMs(store) };
  const working = Promise.all(actors.map((actor) => actor.call('work', { concurrency, count: jobs, handlerMs })));
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

function figures({ perSecond, workerMicros, storeMicros, smallestShare }, one) {
  const { processes } = one;
  const where = lineOf(one);
  const lines = [{ what: `backlog, ${where}`, unit: 'jobs/s', better: 'more', value: perSecond }];
  if (processes > 1) lines.push({ what: `smaller share, ${where}`, unit: '%', better: 'more', value: smallestShare * 100 });
  else {
    lines.push({ what: `worker CPU a job, ${where}`, unit: 'µs', better: 'less', value: workerMicros });
    if (storeMicros !== undefined)
      lines.push({ what: `store CPU a job, ${where}`, unit: 'µs', better: 'less', value: storeMicros });
  }
  return lines;
}

function lineOf({ processes, concurrency, jobs, oneOfSizes, handlerMs, finished }) {
  return [
    `concurrency ${concurrency}`,
    ...(processes === 1 ? [] : [`${processes} processes`]),
    ...(oneOfSizes ? [`${show(jobs)} jobs`] : []),
    ...(handlerMs === 0 ? [] : [`handler ${handlerMs} ms`]),
    ...(finished === 'kept' ? [] : [finished]),
  ].join(', ');
}

function late(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
