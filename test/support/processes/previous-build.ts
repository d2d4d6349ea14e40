// The build of the version that was released before this one (test/previous-build.tgz), unpacked where it finds the packages that it
// needs. `node scripts/keep-build.mjs` keeps the build of the current sources in its place: run it when a version is released.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const archive = join(root, 'test', 'previous-build.tgz');

/** URL of its entry file. */
export function previousBuild(): string {
  const cache = join(root, 'node_modules', '.cache');
  const digest = createHash('sha256').update(readFileSync(archive)).digest('hex').slice(0, 12);
  const folder = join(cache, `holdfast-previous-${digest}`);
  if (!existsSync(folder)) unpack(cache, folder);
  return pathToFileURL(join(folder, 'dist', 'index.js')).href;
}

/** Several test files may do this at once, so the folder appears in one rename. */
function unpack(cache: string, folder: string): void {
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, 'unpacking-'));
  const { status, stderr } = spawnSync('tar', ['xzf', archive, '-C', fresh], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${archive} cannot be unpacked: ${stderr}`);
  try {
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
