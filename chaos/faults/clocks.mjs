// The wall clocks of the processes, which are stepped while they run; the monotonic clock stays right, as on a host whose time is set.
// Needs libfaketime: it reads the offset from a file, about once a second.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderOf } from '../support.mjs';

const STEPS_S = [-86_400, -3600, -60, -5, 5, 60, 3600, 86_400];

export class Clocks {
  #library;
  #folder;

  static async in(folder, names) {
    const clocks = new Clocks();
    clocks.#library = join(await folderOf('faketime'), 'libfaketime.so.1');
    clocks.#folder = folder;
    for (const name of names) clocks.set(name, 0);
    return clocks;
  }

  env(name) {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#fileOf(name),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  set(name, seconds) {
    const file = this.#fileOf(name);
    // In one step, or somebody reads half of it.
    writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${file}.new`, file);
  }

  /** A killed process leaves the library's shared memory behind. */
  forget(pid) {
    for (const kind of ['faketime_shm_', 'sem.faketime_sem_']) rmSync(`/dev/shm/${kind}${pid}`, { force: true });
  }

  #fileOf(name) {
    return join(this.#folder, `${name}.clock`);
  }
}

export function clockFaults(crew, clocks) {
  return [
    {
      kind: 'step the wall clock',
      weight: 6,
      target: (random) => `clock of ${random.of(crew.names())}`,
      strike: (target, random) => clocks.set(target.replace('clock of ', ''), random.of(STEPS_S)),
    },
  ];
}
