// The command line, checked.
import { parseArgs } from 'node:util';
import { number } from '../chaos/settings.mjs';

const STORES = ['sqlite', 'postgres', 'redis'];

const SAMPLE_MS = 10_000;
/** At least so many samples, however short the run is. */
const SAMPLES = 24;
const LEAKS = 20;
const OPTIONS = {
  store: { type: 'string', default: 'sqlite' },
  minutes: { type: 'string', default: '60' },
  seed: { type: 'string' },
  'pace-ms': { type: 'string', default: '45000' },
  leak: { type: 'boolean', default: false },
  json: { type: 'string' },
  keep: { type: 'boolean', default: false },
};

export function readSettings(args) {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (!STORES.includes(values.store)) throw new Error(`--store ${values.store} is not known. Use one of: ${STORES.join(', ')}.`);
  const ms = number('minutes', values.minutes) * 60_000;
  return {
    store: values.store,
    ms,
    paceMs: number('pace-ms', values['pace-ms']),
    seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : number('seed', values.seed),
    leak: values.leak ? { everyMs: ms / LEAKS } : undefined,
    json: values.json,
    keep: values.keep,
    sampleMs: Math.min(SAMPLE_MS, ms / SAMPLES),
    failover: false,
    defects: false,
  };
}
