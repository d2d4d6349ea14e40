// Builds src/ into dist/. Programs may be running from dist/ meanwhile, so the compiler writes into a folder of its own, which
// then takes the place of dist/ in one rename. Nothing is done when dist/ was built from exactly these sources.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finishBuild } from './finish-build.mjs';
import { bringPrebuilt } from './prebuilt.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const src = join(root, 'src');
const dist = join(root, 'dist');

const RECIPE = [
  'tsconfig.json',
  'tsconfig.build.json',
  'package.json',
  'package-lock.json',
  'scripts/bundle.mjs',
  'scripts/finish-build.mjs',
  'scripts/start-thread.mjs',
].map((file) => join(root, file));

export const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/**
 * Brings dist/ up to date. Throws with the compiler's output when the sources do not compile; dist/ then stays as it was.
 * @returns {Promise<boolean>} whether anything was built
 */
export async function build() {
  bringPrebuilt();
  const stamp = sourceStamp();
  if (readStamp() === stamp) return false;
  // In node_modules, so that what a killed build leaves behind is neither linted nor committed.
  const fresh = join(root, 'node_modules', '.cache', `holdfast-build-${process.pid}`);
  mkdirSync(fresh, { recursive: true });
  try {
    const compiled = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--noEmitOnError', '--outDir', fresh], {
      cwd: root,
      encoding: 'utf8',
    });
    if (compiled.status !== 0) throw new Error(`src/ does not compile.\n${compiled.stdout}${compiled.stderr}`);
    await finishBuild(fresh);
    writeFileSync(join(fresh, '.stamp'), stamp);
    putInPlace(fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return true;
}

function putInPlace(fresh) {
  const old = `${fresh}-old`;
  // Another build may put its own dist/ there between our two renames: then ours goes on top of it.
  for (let tries = 1; ; tries++) {
    try {
      renameSync(dist, old);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
    try {
      renameSync(fresh, dist);
      break;
    } catch (error) {
      if (tries === 10 || (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST')) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

/** A text that changes with the sources and with what builds them. */
export function sourceStamp() {
  return stampOf(sources());
}

function sources() {
  const files = readdirSync(src, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((entry) => join(entry.parentPath, entry.name)).sort();
}

function stampOf(files) {
  const hash = createHash('sha256');
  for (const file of [...RECIPE, ...files]) {
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

function readStamp() {
  try {
    return readFileSync(join(dist, '.stamp'), 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log((await build()) ? 'dist/ is built' : 'dist/ is up to date');
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
