// Ten thousand workers of one queue, their sessions opened by this program: what their renewals, sweeps and looks for crashed processes cost
// the store with default times, as a share of one core. Each call is for one session, as if it came from a process of its own.
// How often a worker of a fleet looks, and how often a process that holds locks asks whether it is taken for dead, the product itself says.
import { askEveryMs } from '../../dist/renewal/session-checks.js';
import { CRASH_GRACE_MS } from '../../dist/store/contract/index.js';
import { lookEveryMs } from '../../dist/maintenance/probe-interval.js';
import { SWEPT_AT_ONCE } from '../../dist/maintenance/sweeper.js';
import { withPlace, withStore } from '../places.mjs';
import { ownCpuMs } from '../processor-time.mjs';
import { serverCpuMs } from '../servers.mjs';
import { openSession } from '../sessions.mjs';

const SESSIONS = 10_000;
/** Not all of a fleet: processes, however many workers each has, that hold locks all the time. */
const BUSY = 1000;
const CALLS = 5000;
const IN_FLIGHT = 50;
/** Connections are open, statements are prepared and planned: what a server does once for each connection is not what it costs to keep a fleet. */
const WARM_UP = 500;
/** Between two of a worker with default options, in a fleet of so many. */
const EVERY_MS = { renewals: () => 15_000, sweeps: () => 30_000, probes: lookEveryMs };

export const fleet = {
  name: 'fleet',
  fits: ({ contestant: { id, kind } }) => id === 'holdfast' || kind === 'raw',
  measure: ({ store, contestant, settings }) => {
    const count = Math.max(100, Math.ceil(SESSIONS * settings.scale));
    const calls = Math.max(50, Math.ceil(CALLS * settings.scale));
    return contestant.kind === 'raw' ? rawUpkeep(store, contestant, count, calls) : upkeep(store, count, calls);
  },
};

function upkeep(engine, count, calls) {
  return withStore(engine, async (store, queue) => {
    const sessions = [];
    await inFlight(count, async (n) => sessions.push(await openSession(store, queue, `session-${n}`)));
    const cost = {
      renewals: await cpuOfOne(engine, calls, (n) => store.renew([{ ...sessions[n % count], acked: 0 }])),
      sweeps: await cpuOfOne(engine, calls, () => store.sweep(queue, SWEPT_AT_ONCE)),
      probes: store.capabilities.crashHints ? await cpuOfOne(engine, calls, () => store.probe(queue)) : 0,
    };
    const asks = store.capabilities.fallibleHints === true;
    const question = asks ? await cpuOfOne(engine, calls, (n) => store.checkSessions([sessions[n % count]])) : 0;
    const kinds = Object.keys(EVERY_MS);
    const shares = kinds.map((kind) => shareOf(kind, cost[kind], count));
    return [
      ...kinds.map((kind, index) => line(count, kind, shares[index])),
      line(
        count,
        'all upkeep',
        shares.reduce((sum, share) => sum + share),
      ),
      {
        what: `questions of ${BUSY.toLocaleString('en-US')} busy processes`,
        unit: '% core',
        better: 'less',
        value: (question * BUSY * 100) / askEveryMs(CRASH_GRACE_MS),
      },
    ];
  });
}

/** One call that changes one row for each session, and nothing else: no lock that is checked, no revocations that are told. */
function rawUpkeep(engine, contestant, count, calls) {
  return withPlace(engine, async (place) => {
    const { open } = await import(new URL(`../${contestant.module}`, import.meta.url).href);
    const raw = await open(place);
    try {
      const renew = await raw.sessions(count);
      const cost = await cpuOfOne(engine, calls, (n) => renew(n % count));
      return [line(count, 'renewals', shareOf('renewals', cost, count))];
    } finally {
      await raw.close();
    }
  });
}

function shareOf(kind, cpuMs, count) {
  return (cpuMs * count * 100) / EVERY_MS[kind](count);
}

function line(count, what, value) {
  return { what: `${count.toLocaleString('en-US')} sessions, ${what}`, unit: '% core', better: 'less', value };
}

/** Milliseconds of processor time of the store for one call: the server's, or ours where the store lives in this process. */
async function cpuOfOne(engine, calls, call) {
  await inFlight(WARM_UP, call);
  const before = spent(engine);
  await inFlight(calls, call);
  return (spent(engine) - before) / calls;
}

function spent(engine) {
  // A server that the benchmark did not start cannot be read: then it is this process, which does about as much.
  return serverCpuMs(engine) ?? ownCpuMs();
}

async function inFlight(count, call) {
  let next = 0;
  const lane = async () => {
    while (next < count) await call(next++);
  };
  // Some calls do not keep a process alive, because they belong to the upkeep of one that has other work.
  const alive = setInterval(() => undefined, 1000);
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, count) }, lane));
  clearInterval(alive);
}
