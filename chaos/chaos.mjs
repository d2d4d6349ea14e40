// `npm run chaos`: real processes on a real store, and a nemesis that does to them what production does. docs/chaos.md says what it does and
// what is checked.
//   --store redis       sqlite (unless said otherwise), postgres or redis
//   --minutes 5         how long faults are injected, also parts of a minute
//   --seed 7            the same choices as that run: what strikes whom and when
//   --pace-ms 1800      how long between two faults, about
//   --crash-grace-ms N  the option of that name, for all workers, leaders and holders of locks
//   --failover          Redis with a replica that lags and is promoted again and again
//   --defects           the control: on a store that forgets renewals and jobs, which must be found
//   --keep              keeps the history of a run without violations
//   --check FOLDER      no run: judges the history in this folder
// Exit code 1: a promise was broken; the history is kept, and its place is said.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readHistory } from './history.mjs';
import { judge } from './judge/judge.mjs';
import { progressLine, summary } from './report.mjs';
import { readSettings } from './settings.mjs';
import { runOnSmallDisk } from './small-disk.mjs';

const QUIET_MS = 10_000;

try {
  const settings = readSettings(process.argv.slice(2));
  if (settings.check !== undefined) process.exitCode = report(settings.check) === 0 ? 0 : 1;
  else process.exitCode = (settings.store === 'sqlite' ? await runOnSmallDisk() : undefined) ?? (await runHere(settings));
} catch (error) {
  console.error(process.env.CHAOS_DEBUG ? error : error.message);
  process.exitCode = 1;
}
// Not by running out of work: Node 20 then waits for ever for a socket that was reset while it was being shut down, as proxies do.
process.exit();

async function runHere(settings) {
  // Compiles what it needs: not before the flags are known to be right.
  const { run } = await import('./run.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'));
  let broken = 1;
  // However it ends: also by Ctrl-C.
  process.once('exit', () => {
    if (broken === 0 && !settings.keep) rmSync(folder, { recursive: true, force: true });
    else console.log(`\nThe history is in ${folder}: npm run chaos -- --check ${folder}`);
  });
  const remarks = await run(settings, folder, progressOf(settings));
  broken = report(folder, remarks);
  return broken === 0 ? 0 : 1;
}

/** On a terminal, one line that changes; elsewhere a line now and then. */
function progressOf(settings) {
  let toldAt = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const line = progressLine(progress, settings);
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
    else if (progress.ms - toldAt >= QUIET_MS) {
      toldAt = progress.ms;
      console.log(line);
    }
  };
}

/** How many promises were broken. */
function report(folder, remarks) {
  const entries = readHistory(folder);
  const judged = judge(entries);
  console.log(summary(judged, entries, remarks));
  return judged.violations.length;
}
