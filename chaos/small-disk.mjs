// A disk that can be filled without harm to anybody: a tmpfs of its own in a mount namespace of its own, for which the program starts
// itself once more. No root is needed where the kernel lets users have namespaces.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VARIABLE = 'HOLDFAST_CHAOS_DISK';
const SIZE = '64m';
const MOUNTED = `mount -t tmpfs -o size=${SIZE} tmpfs "$0" && exec "$@"`;

/** Its folder, inside. */
export function smallDisk() {
  return process.env[VARIABLE];
}

/** Runs this program again with such a disk and answers its exit code; undefined when that is done already, or cannot be done. */
export async function runOnSmallDisk() {
  if (smallDisk() !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-disk-'));
  try {
    if (spawnSync('unshare', ['-Urm', 'sh', '-c', MOUNTED, folder, 'true']).status !== 0) return undefined;
    const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    const env = { ...process.env, [VARIABLE]: folder };
    const child = spawn('unshare', ['-Urm', 'sh', '-c', MOUNTED, folder, ...again], { stdio: 'inherit', env });
    // In a terminal Ctrl-C reaches both; whoever ends only us means the other one too.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void child.kill(signal));
    return await new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
