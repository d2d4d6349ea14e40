// The command line of `npm run simulate`, checked.
import { parseArgs } from 'node:util';
import { DEFECTS } from './defects/index.mjs';
import { ENGINES } from './server.mjs';

const USAGE = `npm run simulate -- [options]
  --seed N        the first seed (1)
  --runs M        how many seeds from there (1000)
  --store NAME    on this store: memory (default), sqlite, or split (queues on two servers)
  --only f0,j2    of one seed, only these faults (f), jobs (j), named locks (n) and commands (c)
  --history       of one seed, all that happened
  --defect NAME   with a deliberate defect, which should be found: ${Object.keys(DEFECTS)
    .map((name) => `\n                    ${name}`)
    .join('')}`;

export function readSettings(args) {
  const { values } = parsed(args);
  if (values.help) return { help: USAGE };
  const isOne = values.only !== undefined || values.history;
  const runs = whole('runs', values.runs, 1) ?? (isOne ? 1 : 1000);
  if (isOne && runs !== 1) throw new Error(`--${values.history ? 'history' : 'only'} is about one seed; leave out --runs.`);
  if (values.defect !== undefined && !Object.hasOwn(DEFECTS, values.defect)) {
    throw new Error(`--defect ${values.defect} is not known.\n${USAGE}`);
  }
  if (!Object.hasOwn(ENGINES, values.store)) {
    throw new Error(`--store takes ${Object.keys(ENGINES).join(', ')}, not ${values.store}.`);
  }
  return {
    seed: whole('seed', values.seed, 0) ?? 1,
    runs,
    only: values.only?.split(',').filter((item) => item !== ''),
    history: values.history,
    store: values.store,
    defectName: values.defect,
    defect: DEFECTS[values.defect],
  };
}

function parsed(args) {
  try {
    return parseArgs({
      args,
      options: {
        ...Object.fromEntries(['seed', 'runs', 'only', 'defect'].map((name) => [name, { type: 'string' }])),
        store: { type: 'string', default: 'memory' },
        ...Object.fromEntries(['history', 'help'].map((name) => [name, { type: 'boolean', default: false }])),
      },
    });
  } catch (error) {
    throw new Error(`${error.message}\n${USAGE}`, { cause: error });
  }
}

function whole(flag, text, min) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= min) return number;
  throw new Error(`--${flag} takes a whole number from ${min} up, not ${text}.`);
}
