// `npm run chaos`: real processes on a real store, and a nemesis that does to them what production does. docs/contributing/chaos.md says what it does and
// what is checked.
//   --store redis       sqlite (unless said otherwise), postgres, redis, or redis-cluster: slots that fail over again and again
//   --minutes 5         how long faults are injected, also parts of a minute
//   --seed 7            the same choices as that run: what strikes whom and when
//   --pace-ms 1800      how long between two faults, about
//   --crash-grace-ms N  the option of that name, for all workers, leaders and holders of locks
//   --failover          Redis with a replica that lags and is promoted again and again
//   --defects           the control: on a store that forgets renewals and jobs, which must be found
//   --keep              keeps the history of a run without violations
//   --check FOLDER      no run: judges the history in this folder
//   --peer bullmq       BullMQ under the same faults instead; what it does is counted, and the exit code is 0
//   --compare           with --peer: and Holdfast beside it
//   --locks short       with --peer: both with locks of 5 s as in other runs of chaos, instead of their defaults
// Exit code 1: a promise was broken; the history is kept, and its place is said.
import { readHistory } from './history.mjs';
import { historyFolder } from './history-folder.mjs';
import { judge } from './judge/judge.mjs';
import { main } from './main.mjs';
import { progressWith } from './progress.mjs';
import { summary } from './report.mjs';
import { readSettings } from './settings.mjs';
import { runOnSmallDisk } from './small-disk.mjs';

const QUIET_MS = 10_000;

await main(async () => {
  const settings = readSettings(process.argv.slice(2));
  if (settings.check !== undefined) return report(settings.check) === 0 ? 0 : 1;
  if (settings.peer !== undefined) return (await import('./peers/compare.mjs')).compare(settings, QUIET_MS);
  return (settings.store === 'sqlite' ? await runOnSmallDisk() : undefined) ?? runHere(settings);
});

async function runHere(settings) {
  // Compiles what it needs: not before the flags are known to be right.
  const { run } = await import('./run.mjs');
  const { folder, discard } = historyFolder();
  const remarks = await run(settings, folder, progressWith(settings, QUIET_MS));
  const broken = report(folder, remarks);
  if (broken === 0 && !settings.keep) discard();
  return broken === 0 ? 0 : 1;
}

/** How many promises were broken. */
function report(folder, remarks) {
  const entries = readHistory(folder);
  const judged = judge(entries);
  console.log(summary(judged, entries, remarks));
  return judged.violations.length;
}
