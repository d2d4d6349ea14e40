// The modules of src/ as CommonJS files, one each, for the simulation: it gives every simulated process modules of its own, and replaces
// what some of them export. dist/ has the modules put together.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceStamp, tsc } from './build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = join(root, 'node_modules', '.cache', 'holdfast-modules');

/** Returns the folder of the modules, which are compiled if the sources have changed. Several processes may ask at once. */
export function modulesFolder() {
  const name = sourceStamp().slice(0, 16);
  const folder = join(cache, name);
  if (!existsSync(folder)) {
    const fresh = join(cache, `${name}-${process.pid}`);
    try {
      compileInto(fresh);
      putInPlace(fresh, folder);
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  return join(folder, 'modules');
}

function compileInto(fresh) {
  mkdirSync(fresh, { recursive: true });
  const options = ['--module', 'commonjs', '--verbatimModuleSyntax', 'false', '--declaration', 'false', '--noCheck'];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [tsc, '-p', join(root, 'tsconfig.build.json'), ...options, '--outDir', join(fresh, 'modules')],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`src/ does not compile.\n${stdout}${stderr}`);
  for (const texts of ['sqlite/sql', 'postgres/sql', 'redis/lua'])
    cpSync(join(root, 'src', 'store', texts), join(fresh, 'modules', 'store', texts), { recursive: true });
  // runtime/version.js reads it.
  copyFileSync(join(root, 'package.json'), join(fresh, 'package.json'));
}

/** Another process may have been faster. */
function putInPlace(fresh, folder) {
  try {
    renameSync(fresh, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}
