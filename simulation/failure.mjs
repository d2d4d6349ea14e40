// A failing seed as somebody wants to read it: the least that it takes, what happened, and the line to type to see it again.
import { History, tell } from './history.mjs';
import { describe } from './nemesis.mjs';
import { run } from './run.mjs';
import { itemsOf, shrink } from './shrink.mjs';

/** Enough to see what came before, without all that led there. */
const MOST_LINES = 120;

export async function explain(plan, { violation }, { defect, defectName, store } = {}) {
  const least = await shrink(plan, violation.invariant, { defect, store });
  const history = new History();
  const { violation: seen } = await run(least, { defect, store, history });
  const lines = tell(history, seen);
  const left = lines.length > MOST_LINES ? [`            … ${lines.length - MOST_LINES} lines before`] : [];
  return [
    `seed ${plan.seed}: ${seen.invariant}`,
    `  ${seen.text}`,
    `It takes ${['faults', 'jobs', 'names', 'commands'].map((kind) => shareOf(kind, least, plan)).join(', ')}:`,
    ...least.faults.map((fault) => `  f${fault.index}  ${describe(fault, plan.processes[fault.process].name)}`),
    ...least.jobs.map(
      (job) =>
        `  j${job.index}  ${job.id ?? 'a job'}, added by ${plan.processes[job.by].name}: ${job.runs.map(deeds).join(' | ')}`,
    ),
    ...least.names.map((name) => `  n${name.index}  ${plan.processes[name.by].name} works under "${name.name}"`),
    ...least.commands.map(
      (command) =>
        `  c${command.index}  at ${Math.round(command.at)} ms: ${plan.processes[command.by].name} sends ${told(command)}`,
    ),
    'What happened:',
    ...left,
    ...lines.slice(-MOST_LINES),
    `${seen.at.toFixed(1).padStart(9)} ms  violated: ${seen.invariant}`,
    `Run it again: npm run simulate -- --seed ${plan.seed} --only ${itemsOf(least).join(',')}${again(store, defectName)}`,
  ].join('\n');
}

const KINDS = { names: 'named locks' };

function shareOf(kind, least, plan) {
  return `${least[kind].length} of ${plan[kind].length} ${KINDS[kind] ?? kind}`;
}

function told({ kind, job = 'every job', name }) {
  return `a ${kind} to ${job}${name === undefined ? '' : ` (${name})`}`;
}

function again(store, defectName) {
  return `${store === 'memory' ? '' : ` --store ${store}`}${defectName === undefined ? '' : ` --defect '${defectName}'`}`;
}

function deeds(run) {
  return run.map(({ kind, ms }) => (ms === undefined ? kind : `${kind} ${Math.round(ms)}`)).join(', ');
}
