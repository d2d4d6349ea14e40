// `npm run bench`: what Holdfast reaches on this machine, on each store, with all lock rules in force (lock thread on, SQLite and
// PostgreSQL synced). Machines are noisy: every figure is the median of several rounds, with the spread beside it.
//   npm run bench                throughput, latency, the cost of locks and of workers
//   npm run bench -- recovery    from the SIGKILL of a worker to the start of its job elsewhere
//   npm run bench -- claims      what a claim costs with 10^4, 10^5 and 10^6 waiting jobs
//   --store sqlite   only this store (memory, sqlite, redis, postgres), also several times
//   --rounds 3       more or fewer rounds
//   --quick          one short round of everything
//   --json FILE      the figures for a program
// Servers: REDIS_URL and DATABASE_URL where given, else the benchmark starts its own.
import { writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { adding } from './adding.mjs';
import { backlog } from './backlog.mjs';
import { claims } from './claims.mjs';
import { footprint } from './footprint.mjs';
import { latency } from './latency.mjs';
import { recovery } from './recovery.mjs';
import { renewal } from './renewal.mjs';
import { STORES } from './scene.mjs';
import { closeServers } from './servers.mjs';
import { spread } from './statistics.mjs';

const COMMANDS = {
  all: { measurements: [adding, backlog, latency, renewal, footprint], stores: ['memory', 'sqlite'], rounds: 5 },
  recovery: { measurements: [recovery], stores: ['sqlite', 'redis', 'postgres'], rounds: 15 },
  // Its backlogs take long to make, so it goes through its rounds by itself.
  claims: { measurements: [claims], stores: ['sqlite', 'redis', 'postgres'], rounds: 9, ownRounds: true },
};

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    store: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    json: { type: 'string' },
  },
});
const [name = 'all'] = positionals;
const command = COMMANDS[name] ?? refuse(`There is no ${name}. Measure one of: ${Object.keys(COMMANDS).join(', ')}.`);
const stores = flags.store ?? command.stores;
for (const store of stores) if (!STORES.includes(store)) refuse(`There is no store ${store}. Use one of: ${STORES.join(', ')}.`);
if (name === 'recovery' && stores.includes('memory')) refuse('Nobody but its own process reaches a store in memory.');
const rounds = flags.rounds === undefined ? (flags.quick ? 1 : command.rounds) : Number(flags.rounds);
if (!Number.isInteger(rounds) || rounds < 1) refuse('--rounds takes a whole number from 1 up.');
const scale = flags.quick ? 0.1 : 1;

const machine = {
  node: process.version,
  cpu: cpus()[0]?.model.trim(),
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
};
console.log(
  `Node ${machine.node}, ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB; median of ${rounds} (lowest … highest)\n`,
);

const figures = new Map();
try {
  // Stores take turns within a round, so that a slow minute of the machine hits them alike.
  for (let round = 1; round <= (command.ownRounds ? 1 : rounds); round += 1) {
    for (const measure of command.measurements) for (const store of stores) await run(measure, store, round);
  }
} finally {
  await closeServers();
}
if (process.stderr.isTTY) process.stderr.write(`${' '.repeat(60)}\r`);

const rows = [...figures.values()].map((figure) => ({ ...figure, ...spread(figure.values) }));
for (const store of stores) {
  console.log(`${store}`);
  for (const { what, unit, median, low, high } of rows.filter((row) => row.store === store)) {
    console.log(`  ${what.padEnd(52)} ${show(median).padStart(10)} ${unit.padEnd(8)} (${show(low)} … ${show(high)})`);
  }
}
if (flags.json !== undefined) await writeFile(flags.json, JSON.stringify({ machine, rounds, rows }, null, 2));

async function run(measure, store, round) {
  if (process.stderr.isTTY) process.stderr.write(`round ${round} of ${rounds}: ${measure.name} on ${store}${' '.repeat(20)}\r`);
  for (const { what, unit, value, values = [value] } of await measure(store, scale, rounds)) {
    const key = `${store}\0${what}`;
    const figure = figures.get(key) ?? { store, what, unit, values: [] };
    figure.values.push(...values);
    figures.set(key, figure);
  }
}

function refuse(message) {
  console.error(message);
  process.exit(1);
}

function show(value) {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}
