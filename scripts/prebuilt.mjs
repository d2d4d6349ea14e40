// Fills prebuilt/ with the binaries of @photostructure/sqlite, which the package ships (src/store/sqlite/driver/prebuilt.ts).
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKAGE = '@photostructure/sqlite';

/** All that a package must bring: on Linux one binary for each C library. */
const BINARIES = [
  ...['linux-x64', 'linux-arm64'].flatMap((platform) => [binary(platform, 'glibc'), binary(platform, 'musl')]),
  ...['darwin-x64', 'darwin-arm64', 'win32-x64', 'win32-arm64'].map((platform) => binary(platform, 'glibc')),
];

/**
 * Every build brings them, so that there is no dist/ without them, and no tarball that works everywhere but on Node 20. Throws where that cannot
 * be: what was there before is left as it was.
 */
export function bringPrebuilt({
  source = join(root, 'node_modules', PACKAGE),
  target = join(root, 'prebuilt'),
  cache = join(root, 'node_modules', '.cache'),
} = {}) {
  const manifest = join(source, 'package.json');
  if (!existsSync(manifest)) {
    if (lacking(target).length === 0) return;
    throw new Error(`The package ${PACKAGE} is not installed, and prebuilt/ lacks ${lacking(target).join(', ')}. Run: npm ci`);
  }
  const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
  if (isComplete(target, version)) return;
  const fresh = join(cache, `holdfast-prebuilt-${process.pid}`);
  mkdirSync(fresh, { recursive: true });
  try {
    cpSync(join(source, 'prebuilds'), fresh, { recursive: true });
    const missing = lacking(fresh);
    if (missing.length > 0) throw new Error(`${PACKAGE} ${version} lacks ${missing.join(', ')}. Run: npm ci`);
    cpSync(join(source, 'LICENSE'), join(fresh, 'LICENSE'));
    writeFileSync(join(fresh, 'VERSION'), `${PACKAGE} ${version}\n`);
    rmSync(target, { recursive: true, force: true });
    renameSync(fresh, target);
  } catch (error) {
    // Another build may have been faster.
    if (!isComplete(target, version)) throw error;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function binary(platform, library) {
  return `${platform}/@photostructure+sqlite.${library}.node`;
}

function isComplete(folder, version) {
  return versionOf(folder) === version && lacking(folder).length === 0;
}

/** The binaries that are missing or empty. */
function lacking(folder) {
  return BINARIES.filter((file) => (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0) === 0);
}

function versionOf(folder) {
  const file = join(folder, 'VERSION');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').pop() : undefined;
}
