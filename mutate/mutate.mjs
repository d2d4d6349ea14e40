// `npm run mutate`: breaks the product in one place at a time and looks whether the tests notice. docs/contributing/mutants.md has more.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AREAS } from './mutants/index.mjs';
import { misfit, Workshop } from './workshop.mjs';

/** Of the mutants that are not equivalent. */
const GOAL = 0.97;
const USAGE = `npm run mutate -- [options]
  --only AREA       one area: ${Object.keys(AREAS).join(', ')}
  --name TEXT       only mutants with this text in their names
  --unchecked       skips the tests without a mutant: only where they are known to pass
  --list            names them, and checks that they fit the sources
  --verbose         shows the output of the tests that a mutant survived`;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.exitCode = await main();

async function main() {
  const settings = read();
  if (typeof settings === 'string') {
    console.error(settings);
    return 1;
  }
  const all = chosen(settings);
  const mutants = all.filter(({ misfit: why }) => why === undefined);
  for (const { title, misfit: why } of all) if (why !== undefined) console.error(`does not fit  ${title}: ${why}`);
  const failure = all.length > mutants.length ? 1 : 0;
  if (mutants.length === 0) {
    console.error('No mutant of that name fits the sources.');
    return 1;
  }
  if (settings.list) {
    for (const { title, file } of mutants) console.log(`${title}  (${file})`);
    return failure;
  }
  const workshop = new Workshop();
  const stop = () => {
    workshop.close();
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
  try {
    return (await run(workshop, mutants, settings)) || failure;
  } finally {
    workshop.close();
  }
}

function read() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        name: { type: 'string' },
        unchecked: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return USAGE;
    if (values.only !== undefined && !Object.hasOwn(AREAS, values.only)) return `--only ${values.only} is no area.\n${USAGE}`;
    return values;
  } catch (error) {
    return `${error.message}\n${USAGE}`;
  }
}

function chosen({ only, name = '' }) {
  const exists = (file) => existsSync(join(root, file));
  return Object.entries(AREAS)
    .filter(([area]) => only === undefined || area === only)
    .flatMap(([area, mutants]) => mutants.map((mutant) => ({ ...mutant, area, title: `${area}: ${mutant.name}` })))
    .filter(({ title }) => title.includes(name))
    .map((mutant) => ({ ...mutant, misfit: misfit(mutant, exists) }));
}

async function run(workshop, mutants, { verbose, unchecked }) {
  const tried = mutants.filter(({ equivalent }) => equivalent === undefined);
  for (const { title, equivalent } of mutants) if (equivalent !== undefined) console.log(`equivalent  ${title}: ${equivalent}`);
  if (!unchecked && !(await isGreen(workshop, tried))) return 1;
  const counts = { killed: 0, survived: 0, broken: 0 };
  for (const mutant of tried) {
    const started = performance.now();
    const { result, by, output } = await workshop.try(mutant);
    counts[result] += 1;
    const took = `${((performance.now() - started) / 1000).toFixed(1)} s`;
    console.log(`${result.padEnd(10)}  ${mutant.title} (${took}${result === 'killed' ? `, by ${by}` : ''})`);
    if (result === 'broken' || (verbose && result === 'survived')) console.log(output);
  }
  const share = counts.killed / tried.length;
  console.log(
    `\n${counts.killed} of ${tried.length} killed (${(100 * share).toFixed(1)} %), ${counts.survived} survived, ${counts.broken} broken, ` +
      `${mutants.length - tried.length} equivalent`,
  );
  return share >= GOAL && counts.broken === 0 ? 0 : 1;
}

/** Tests that fail without a mutant kill none. */
async function isGreen(workshop, mutants) {
  const selections = new Map();
  for (const { only, tests } of mutants) selections.set(only, new Set([...(selections.get(only) ?? []), ...tests]));
  for (const [only, tests] of selections) {
    console.log(`without a mutant: ${tests.size} test files${only === undefined ? '' : `, ${only}`}`);
    const { result, by, output } = await workshop.test([...tests], only);
    if (result === 'survived') continue;
    console.error(output);
    console.error(`The tests fail without a mutant, so that they prove nothing: ${by ?? 'they do not run'}`);
    return false;
  }
  return true;
}
