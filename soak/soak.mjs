// `npm run soak`: mixed load with a fault about once a minute, for long, and what two processes and the store hold all the while.
// docs/contributing/soak.md says what is done and when a curve is flat.
//   --store redis       sqlite (unless said otherwise), postgres or redis
//   --minutes 60        how long
//   --seed 7            the same choices as that run
//   --pace-ms 45000     how long between two faults, about
//   --json FILE         writes all samples and verdicts there
//   --leak              the control: memory, connections and jobs are leaked on purpose, which must be found
//   --keep              keeps the history of a run without violations
// Exit code 1: something is not flat, or a promise was broken.
import { writeFileSync } from 'node:fs';
import { readHistory } from '../chaos/history.mjs';
import { historyFolder } from '../chaos/history-folder.mjs';
import { judge } from '../chaos/judge/judge.mjs';
import { main } from '../chaos/main.mjs';
import { progressWith } from '../chaos/progress.mjs';
import { summary } from '../chaos/report.mjs';
import { runOnSmallDisk } from '../chaos/small-disk.mjs';
import { soakCast } from './cast.mjs';
import { columnsOf } from './columns.mjs';
import { curve } from './curve.mjs';
import { readSettings } from './settings.mjs';
import { verdictsOf } from './verdict.mjs';

const QUIET_MS = 60_000;

await main(async () => {
  const settings = readSettings(process.argv.slice(2));
  return (settings.store === 'sqlite' ? await runOnSmallDisk() : undefined) ?? soak(settings);
});

async function soak(settings) {
  // They compile what they need: not before the flags are known to be right.
  const { run } = await import('../chaos/run.mjs');
  const { Sampler } = await import('./sampler.mjs');
  const { onRoomyPostgres } = await import('../chaos/places/server.mjs');
  const { store, ms, sampleMs, leak, json, keep, seed } = settings;
  const history = historyFolder();
  const sampler = new Sampler(store, sampleMs);
  const place = store === 'postgres' && leak !== undefined ? onRoomyPostgres : undefined;
  const scene = { cast: soakCast(leak), place, hasClocks: false, beside: (stage) => sampler.start(stage) };
  const remarks = await run(settings, history.folder, progressWith(settings, QUIET_MS), scene);
  const entries = readHistory(history.folder);
  const judged = judge(entries);
  const columns = columnsOf(store);
  const { samples } = sampler;
  const verdicts = verdictsOf(samples, columns, ms);
  console.log(summary(judged, entries, remarks));
  console.log(curve(samples, columns, verdicts, ms));
  const steep = [...verdicts].filter(([, { flat }]) => flat !== true).map(([name]) => name);
  console.log(`\n${steep.length === 0 ? 'All flat.' : `Not flat: ${steep.join(', ')}.`}`);
  if (json !== undefined) {
    const { figures, violations } = judged;
    const found = { store, minutes: ms / 60_000, seed, samples, verdicts: Object.fromEntries(verdicts), figures, violations };
    writeFileSync(json, `${JSON.stringify(found, undefined, 1)}\n`);
  }
  if (judged.violations.length === 0 && !keep) history.discard();
  return steep.length === 0 && judged.violations.length === 0 ? 0 : 1;
}
