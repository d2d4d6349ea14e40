// `npm run simulate`: many runs of the real product on a simulated clock, network and scheduler, one for each seed. It says what was violated
// and how to see it again, and ends with 1 when anything was. docs/contributing/simulation.md tells what is simulated and what is looked at.
import { explain } from './failure.mjs';
import { History, NO_HISTORY, tell } from './history.mjs';
import { planOf } from './plan.mjs';
import { run } from './run.mjs';
import { readSettings } from './settings.mjs';
import { only } from './shrink.mjs';
import { Tally } from './tally.mjs';

const PROGRESS_MS = 5000;
/** Shrinking takes its time, and one cause mostly fails many seeds. */
const MOST_EXPLAINED = 3;

async function main() {
  const settings = readSettings(process.argv.slice(2));
  if (settings.help !== undefined) {
    console.log(settings.help);
    return;
  }
  const tally = new Tally();
  const began = performance.now();
  let toldAt = began;
  for (let seed = settings.seed; seed < settings.seed + settings.runs; seed += 1) {
    await runSeed(seed, settings, tally);
    if (performance.now() - toldAt < PROGRESS_MS) continue;
    toldAt = performance.now();
    console.log(`${Math.round((100 * tally.runs) / settings.runs)} %: ${tally.progress}`);
  }
  console.log(`\n${tally.summary(performance.now() - began)}`);
  if (tally.violations.length > 0) process.exitCode = 1;
}

async function runSeed(seed, settings, tally) {
  const whole = planOf(seed, settings.store);
  const plan = settings.only === undefined ? whole : only(whole, settings.only);
  const history = settings.history ? new History() : NO_HISTORY;
  const result = await run(plan, { defect: settings.defect, store: settings.store, history });
  tally.count(seed, result);
  if (settings.history) console.log(tell(history).join('\n'));
  if (result.violation !== undefined && tally.violations.length <= MOST_EXPLAINED)
    console.log(`\n✗ ${await explain(plan, result, settings)}\n`);
}

// Ends in order, so that what is left in files of memory is removed.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
