// Memory, threads and open files of a process with 1 and with 20 workers, the lock thread included.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withStore } from './scene.mjs';

const CHILD = fileURLToPath(new URL('./footprint-process.mjs', import.meta.url));
const run = promisify(execFile);

export async function footprint(engine) {
  const figures = [];
  for (const workers of [1, 20]) {
    const { stdout } = await withStore(engine, (_store, url) =>
      run(process.execPath, ['--expose-gc', CHILD, url, String(workers)]),
    );
    const { rssMiB, threads, connections } = JSON.parse(stdout);
    const label = workers === 1 ? '1 worker' : `${workers} workers`;
    figures.push({ what: `memory of a process with ${label}`, unit: 'MiB', value: rssMiB });
    figures.push({ what: `lock threads with ${label}`, unit: 'threads', value: threads });
    if (connections !== null) figures.push({ what: `connections to the store with ${label}`, unit: 'open', value: connections });
  }
  return figures;
}
