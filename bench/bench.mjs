// `npm run bench`: Holdfast beside its peers and beside what each store can do at most, in one run, with all lock rules in force (lock
// thread on, SQLite and PostgreSQL synced). docs/benchmarks.md says what each line means and how fairness is kept.
//   --only backlog      only this measurement, also several times; MEASUREMENTS below are all there are
//   --store redis       only this store (redis, postgres, sqlite, memory), also several times
//   --rounds 5          more or fewer rounds than three
//   --jobs 20000,200000 smaller or larger backlogs than 50,000
//   --finished removed  backlogs of jobs that are removed when they are finished, or kept; both if not given
//   --handler-ms 0,10   backlogs with handlers that wait so long instead of doing nothing
//   --cost              jobs a second for your handler time, with Holdfast alone; with --write, into docs/benchmarks.md
//   --quick, --tiny     some minutes' run; one iteration of everything to see that it works
//   --long              also what is left of a million jobs in memory
//   --peers none        all (installed on first use), installed (if they are there), or none
//   --json FILE         the figures for a program;  --from FILE  no measuring: reports what such files hold
//   --svg FILE          a chart;  --write  puts tables and chart into README.md and docs/contributing/benchmark-figures.md
// Servers: REDIS_URL and DATABASE_URL where given, else the benchmark starts its own.
import { readFile, writeFile } from 'node:fs/promises';
import { machine } from './machine.mjs';
import { measureAll } from './measure-all.mjs';
import { adding } from './measurements/adding.mjs';
import { backlog } from './measurements/backlog.mjs';
import { blocked } from './measurements/blocked.mjs';
import { claims } from './measurements/claims.mjs';
import { endurance } from './measurements/endurance.mjs';
import { fleet } from './measurements/fleet.mjs';
import { footprint } from './measurements/footprint.mjs';
import { latency } from './measurements/latency.mjs';
import { recovery } from './measurements/recovery.mjs';
import { renewal } from './measurements/renewal.mjs';
import { sandbox } from './measurements/sandbox.mjs';
import { schedules } from './measurements/schedules.mjs';
import { buildSqliteDriver } from '../scripts/sqlite-driver.mjs';
import { installPeers, peersAreInstalled } from './peers.mjs';
import { chart } from './report/chart.mjs';
import { printCost, writeCost } from './report/cost.mjs';
import { join } from './report/join.mjs';
import { writeTables } from './report/markdown.mjs';
import { printTable } from './report/table.mjs';
import { closeServers } from './servers.mjs';
import { readSettings } from './settings.mjs';

const MEASUREMENTS = [
  adding,
  backlog,
  latency,
  renewal,
  claims,
  schedules,
  fleet,
  footprint,
  sandbox,
  blocked,
  recovery,
  endurance,
];

try {
  const settings = readSettings(MEASUREMENTS.map(({ name }) => name));
  const report = settings.from === undefined ? await measure(settings) : join(await Promise.all(settings.from.map(read)));
  if (settings.from !== undefined) printTable(report);
  if (settings.json !== undefined) await writeFile(settings.json, `${JSON.stringify(report, null, 2)}\n`);
  if (settings.svg !== undefined) await writeFile(settings.svg, chart(report));
  if (settings.cost) printCost(report);
  if (settings.write) await (settings.cost ? writeCost : writeTables)(report);
  if (report.failures.some(({ kind }) => kind === 'ours')) process.exitCode = 1;
} catch (error) {
  console.error(process.env.BENCH_DEBUG ? error : error.message);
  process.exitCode = 1;
}

async function read(file) {
  return JSON.parse(await readFile(file, 'utf8'));
}

async function measure(settings) {
  if (settings.peers === 'all') installPeers();
  // For the raw limit of SQLite. Without it, the rest is measured.
  if (settings.stores.includes('sqlite')) await buildSqliteDriver();
  const withPeers = settings.peers !== 'none' && peersAreInstalled();
  try {
    const measured = await measureAll(
      MEASUREMENTS.filter(({ name }) => settings.only.includes(name)),
      settings,
      withPeers,
    );
    const report = { ...(await machine(settings, withPeers)), ...measured, judged: settings.judged };
    printTable(report);
    return report;
  } finally {
    await closeServers();
  }
}
