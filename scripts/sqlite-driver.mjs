// Builds better-sqlite3, which only the tests and the benchmark need. No package runs a script while it is installed (.npmrc), and a change
// of Node's version leaves a binding that does not load.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { npm } from './npm.mjs';

/** Returns whether the driver loads. If it does not after the build, says how to see why. */
export async function buildSqliteDriver() {
  if (loads()) return true;
  console.error('Building better-sqlite3, which takes half a minute or more where no prebuilt binary can be fetched.');
  // -O1 halves the time of the compiler.
  await npm(['rebuild', 'better-sqlite3', '--ignore-scripts=false'], { CFLAGS: '-O1', CXXFLAGS: '-O1' });
  if (loads()) return true;
  console.error('It could not be built. Type this to see why (it needs a C++ compiler and python3):');
  console.error('  npm rebuild better-sqlite3 --ignore-scripts=false --foreground-scripts');
  return false;
}

function loads() {
  const driver = createRequire(import.meta.url).resolve('better-sqlite3');
  return spawnSync(process.execPath, ['-e', `new (require(${JSON.stringify(driver)}))(':memory:').close()`]).status === 0;
}
