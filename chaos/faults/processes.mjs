// What happens to processes on any store.
import { ABOUT_A_LOCK, LONGER_THAN_A_LOCK, SHORTER_THAN_A_LOCK } from '../lock-times.mjs';
import { within } from '../nemesis.mjs';

const HOLDERS = ['worker', 'leader', 'locker'];

export function processFaults(crew, { hasThreads = true } = {}) {
  const anybody = (random) => random.of(crew.names());
  const holder = (random) => random.of(crew.names(...HOLDERS));
  const mortal = (random) => random.of(crew.mortals());
  const mortalWorker = (random) => random.of(crew.mortals('worker'));
  const mortalHolder = (random) => random.of(crew.mortals(...HOLDERS));
  const freeze = { strike: (name) => crew.freeze(name), end: (name) => crew.thaw(name) };
  const killThread = {
    kind: 'kill the lock thread',
    weight: 8,
    target: holder,
    strike: (name, random) => crew.killThread(name, random.of(['exit', 'throw'])),
  };
  return [
    { kind: 'kill', weight: 14, target: mortal, strike: (name) => crew.kill(name) },
    { kind: 'kill a worker', weight: 8, target: mortalWorker, strike: (name) => crew.kill(name) },
    { kind: 'freeze, shorter than a lock', weight: 8, target: anybody, lasts: within(SHORTER_THAN_A_LOCK), ...freeze },
    { kind: 'freeze, longer than a lock', weight: 8, target: holder, lasts: within(LONGER_THAN_A_LOCK), ...freeze },
    {
      kind: 'freeze, then kill',
      weight: 2,
      target: mortalHolder,
      lasts: within(ABOUT_A_LOCK),
      strike: freeze.strike,
      end: (name) => crew.kill(name),
    },
    { kind: 'deploy', weight: 6, target: mortal, strike: (name) => crew.leave(name) },
    ...(hasThreads ? [killThread] : []),
  ];
}
