// `npm run bench`: what Holdfast reaches on this machine, on each store, with all lock rules in force (lock thread on, SQLite fsynced).
// Machines are noisy: every figure is the median of several rounds, with the spread beside it.
//   --quick          one short round of everything
//   --store sqlite   only this store
//   --json FILE      the figures for a program
import { writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { adding } from './adding.mjs';
import { backlog } from './backlog.mjs';
import { footprint } from './footprint.mjs';
import { latency } from './latency.mjs';
import { renewal } from './renewal.mjs';
import { spread } from './statistics.mjs';

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, store: { type: 'string' }, json: { type: 'string' } },
});
const stores = flags.store === undefined ? ['memory', 'sqlite'] : [flags.store];
const rounds = flags.quick ? 1 : 5;
const scale = flags.quick ? 0.1 : 1;
const measurements = [adding, backlog, latency, renewal, footprint];

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
// Stores take turns within a round, so that a slow minute of the machine hits them alike.
for (let round = 1; round <= rounds; round += 1) {
  for (const measure of measurements) {
    for (const store of stores) {
      if (process.stderr.isTTY)
        process.stderr.write(`round ${round} of ${rounds}: ${measure.name} on ${store}${' '.repeat(20)}\r`);
      for (const { what, unit, value } of await measure(store, scale)) {
        const key = `${store}\0${what}`;
        const figure = figures.get(key) ?? { store, what, unit, values: [] };
        figure.values.push(value);
        figures.set(key, figure);
      }
    }
  }
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

function show(value) {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}
