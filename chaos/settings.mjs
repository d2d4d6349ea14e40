// The command line, checked.
import { parseArgs } from 'node:util';

const STORES = ['sqlite', 'postgres', 'redis', 'redis-cluster'];
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
  peer: { type: 'string' },
  compare: { type: 'boolean', default: false },
  locks: { type: 'string', default: 'default' },
};
const PEERS = ['bullmq'];
const LOCKS = ['default', 'short'];

export function readSettings(args) {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (!STORES.includes(values.store)) throw new Error(`--store ${values.store} is not known. Use one of: ${STORES.join(', ')}.`);
  if (values.failover && values.store !== 'redis')
    throw new Error('--failover needs --store redis: two Redis servers, one of them a replica.');
  checkPeer(values);
  return {
    peer: values.peer,
    compare: values.compare,
    locks: values.locks,
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

function checkPeer({ peer, compare, locks, store, failover, defects }) {
  if (peer === undefined && compare) throw new Error('--compare needs --peer: whom to compare with.');
  if (!LOCKS.includes(locks)) throw new Error(`--locks ${locks} is not known. Use one of: ${LOCKS.join(', ')}.`);
  if (peer === undefined) return;
  if (!PEERS.includes(peer)) throw new Error(`--peer ${peer} is not known. Use one of: ${PEERS.join(', ')}.`);
  if (!store.startsWith('redis') || failover || defects)
    throw new Error(`--peer ${peer} needs --store redis or redis-cluster, without --failover or --defects.`);
}

export function number(flag, text) {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${flag} takes a number above 0, not "${text}".`);
  return value;
}
