// The command line, checked.
import { parseArgs } from 'node:util';

export const STORES = ['sqlite', 'postgres', 'redis'];
const OPTIONS = {
  store: { type: 'string', default: 'sqlite' },
  minutes: { type: 'string', default: '5' },
  seed: { type: 'string' },
  'pace-ms': { type: 'string', default: '1800' },
  'crash-grace-ms': { type: 'string' },
  failover: { type: 'boolean', default: false },
  defects: { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
  check: { type: 'string' },
};

export function readSettings(args) {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (!STORES.includes(values.store)) throw new Error(`--store ${values.store} is not known. Use one of: ${STORES.join(', ')}.`);
  if (values.failover && values.store !== 'redis')
    throw new Error('--failover needs --store redis: two Redis servers, one of them a replica.');
  return {
    store: values.store,
    failover: values.failover,
    defects: values.defects,
    keep: values.keep,
    check: values.check,
    ms: number('minutes', values.minutes) * 60_000,
    paceMs: number('pace-ms', values['pace-ms']),
    crashGraceMs: values['crash-grace-ms'] === undefined ? undefined : number('crash-grace-ms', values['crash-grace-ms']),
    seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : number('seed', values.seed),
  };
}

function number(flag, text) {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${flag} takes a number above 0, not "${text}".`);
  return value;
}
