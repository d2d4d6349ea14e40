// Fills prebuilt/ with the binaries of @photostructure/sqlite, which the package ships (src/store/sqlite/driver/prebuilt.ts).
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'node_modules', '@photostructure', 'sqlite');
const target = join(root, 'prebuilt');

/** Does nothing where the package is not installed: all but Node 20 works without. test/package sees to it that the tarball has them. */
export function bringPrebuilt() {
  if (!existsSync(source)) return;
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  if (versionOf(target) === version) return;
  const fresh = join(root, 'node_modules', '.cache', `holdfast-prebuilt-${process.pid}`);
  mkdirSync(fresh, { recursive: true });
  try {
    cpSync(join(source, 'prebuilds'), fresh, { recursive: true });
    cpSync(join(source, 'LICENSE'), join(fresh, 'LICENSE'));
    writeFileSync(join(fresh, 'VERSION'), `@photostructure/sqlite ${version}\n`);
    rmSync(target, { recursive: true, force: true });
    renameSync(fresh, target);
  } catch (error) {
    // Another build may have been faster.
    if (versionOf(target) !== version) throw error;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function versionOf(folder) {
  const file = join(folder, 'VERSION');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').pop() : undefined;
}
