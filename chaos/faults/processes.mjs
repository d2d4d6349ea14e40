// What happens to processes on any store.
import { ABOUT_A_LOCK, LONGER_THAN_A_LOCK, SHORTER_THAN_A_LOCK } from '../lock-times.mjs';
import { within } from '../nemesis.mjs';

export function processFaults(crew) {
  const anybody = (random) => random.of(crew.names());
  const worker = (random) => random.of(crew.names('worker'));
  const holder = (random) => random.of(crew.names('worker', 'leader', 'locker'));
  const freeze = { strike: (name) => crew.freeze(name), end: (name) => crew.thaw(name) };
  return [
    { kind: 'kill', weight: 14, target: anybody, strike: (name) => crew.kill(name) },
    { kind: 'kill a worker', weight: 8, target: worker, strike: (name) => crew.kill(name) },
    { kind: 'freeze, shorter than a lock', weight: 8, target: anybody, lasts: within(SHORTER_THAN_A_LOCK), ...freeze },
    { kind: 'freeze, longer than a lock', weight: 8, target: holder, lasts: within(LONGER_THAN_A_LOCK), ...freeze },
    {
      kind: 'freeze, then kill',
      weight: 2,
      target: holder,
      lasts: within(ABOUT_A_LOCK),
      strike: freeze.strike,
      end: (name) => crew.kill(name),
    },
    { kind: 'deploy', weight: 6, target: anybody, strike: (name) => crew.leave(name) },
    {
      kind: 'kill the lock thread',
      weight: 8,
      target: holder,
      strike: (name, random) => crew.killThread(name, random.of(['exit', 'throw'])),
    },
  ];
}
