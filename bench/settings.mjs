// The command line, checked, as one object that all measurements read.
import { parseArgs } from 'node:util';
import { CONTESTANTS, FINISHED, STORES } from './contestants.mjs';

const SIZES = {
  full: {
    ...{ rounds: 3, jobs: 50_000, processes: [1, 2], concurrencies: [1, 10, 100], limitMs: 10_000, latencies: 500 },
    ...{ scale: 1, recoveryMs: 90_000, endurance: 1_000_000 },
  },
  quick: {
    ...{ rounds: 1, jobs: 20_000, processes: [1], concurrencies: [1, 10, 100], limitMs: 2000, latencies: 20 },
    ...{ scale: 0.05, recoveryMs: 10_000, endurance: 20_000 },
  },
  tiny: {
    ...{ rounds: 1, jobs: 200, processes: [1, 2], concurrencies: [10], limitMs: 500, latencies: 5 },
    ...{ scale: 0.01, recoveryMs: 10_000, endurance: 2000 },
  },
};
const IN_MINUTES = ['adding', 'backlog'];
const IDS = [...new Set(CONTESTANTS.map(({ id }) => id))];
const COUNTS = ['1', '10', '100'];
/** What `--cost` stands for: Holdfast with default options, at all concurrencies and handler times. */
const COST = { only: ['backlog'], contestant: ['holdfast'], processes: ['1'], finished: ['kept'], peers: 'none' };
const COST_MS = ['0', '1', '10', '100'];
const LISTS = ['only', 'store', 'contestant', 'concurrency', 'processes', 'finished', 'jobs', 'handler-ms', 'from'];
const PEERS = ['all', 'installed', 'none'];

export function readSettings(measurements) {
  const { values } = parseArgs({
    options: {
      ...Object.fromEntries(
        ['quick', 'tiny', 'long', 'write', 'cost'].map((name) => [name, { type: 'boolean', default: false }]),
      ),
      ...Object.fromEntries(LISTS.map((name) => [name, { type: 'string', multiple: true }])),
      ...Object.fromEntries(['rounds', 'peers', 'json', 'svg'].map((name) => [name, { type: 'string' }])),
    },
  });
  const flags = values.cost ? { 'handler-ms': COST_MS, ...values, ...COST } : values;
  const size = SIZES[flags.tiny ? 'tiny' : flags.quick ? 'quick' : 'full'];
  const usual = flags.quick ? IN_MINUTES : measurements.filter((name) => name !== 'endurance' || flags.long);
  return {
    ...size,
    tiny: flags.tiny,
    // What a few jobs take says nothing about what many take.
    judged: !flags.tiny && !flags.quick,
    write: flags.write,
    cost: flags.cost,
    ...given(flags, ['json', 'from', 'svg']),
    rounds: whole('rounds', flags.rounds) ?? size.rounds,
    jobs: listed(flags.jobs)?.map((each) => whole('jobs', each)) ?? [size.jobs],
    handlerMs: listed(flags['handler-ms'])?.map((each) => whole('handler-ms', each, 0)) ?? [0],
    finished: chosen('finished', flags.finished, FINISHED) ?? FINISHED,
    stores: chosen('store', flags.store, STORES) ?? STORES,
    contestants: chosen('contestant', flags.contestant, IDS) ?? IDS,
    concurrencies: chosen('concurrency', flags.concurrency, COUNTS)?.map(Number) ?? size.concurrencies,
    processes: chosen('processes', flags.processes, ['1', '2'])?.map(Number) ?? size.processes,
    only: chosen('only', flags.only, measurements) ?? usual,
    peers:
      chosen('peers', flags.peers === undefined ? undefined : [flags.peers], PEERS)?.[0] ?? (flags.tiny ? 'installed' : 'all'),
  };
}

/** Both `--only a --only b` and `--only a,b`. */
function listed(values) {
  return values?.flatMap((value) => value.split(','));
}

function chosen(flag, values, known) {
  const names = listed(values);
  for (const name of names ?? [])
    if (!known.includes(name)) throw new Error(`--${flag} ${name} is not known. Use one of: ${known.join(', ')}.`);
  return names;
}

function whole(flag, text, least = 1) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!Number.isInteger(number) || number < least) throw new Error(`--${flag} takes a whole number from ${least} up.`);
  return number;
}

function given(flags, names) {
  return Object.fromEntries(names.filter((name) => flags[name] !== undefined).map((name) => [name, flags[name]]));
}
