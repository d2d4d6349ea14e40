// `npm test`: the gate. It builds, checks types, lint and formatting, and holds every promise, in ten minutes on two cores.
// `npm run test:all`: the same with every test on every store; CONTRIBUTING.md lists the difference.
// With arguments, which go to vitest (`npm test -- test/unit -t 'a name'`): build and the tests that they select, on every store.
// The last line counts: `N passed, N failed`. A failed check counts as one failure.
import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseCLI, startVitest } from 'vitest/node';
import { build } from './build.mjs';
import { TestProgress } from './test-progress.mjs';

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))));
const all = process.argv[2] === '--all';
const selection = process.argv.slice(all ? 3 : 2);
const failedChecks = [];
const failedFiles = [];

// The driver is compiled on one core while the other does the rest.
const driver = ensureSqliteDriver();
await check('build', build);
if (selection.length === 0 && failedChecks.length === 0) {
  if (!all) beGate();
  await check('types', () => npmRun('typecheck'));
  await check('lint and formatting', () => npmRun('lint'));
}
await driver;
if (['build', 'better-sqlite3'].some((name) => failedChecks.includes(name))) finish({ passed: 0, failed: 0, skipped: 0 });
finish(await runTests());

/** For test/support/run/matrix.ts. */
function beGate() {
  process.env.HOLDFAST_GATE = '1';
  console.log('The gate: every promise, in about ten minutes on two cores. npm run test:all tests every store in every file.');
}

async function check(name, run) {
  const start = performance.now();
  try {
    await run();
    console.log(`✓ ${name} (${Math.round(performance.now() - start)} ms)`);
  } catch (error) {
    failedChecks.push(name);
    console.error(`✗ ${name}: ${error.message}`);
  }
}

async function npmRun(script) {
  if ((await npm(['run', '--silent', script])) !== 0) throw new Error(`npm run ${script} failed`);
}

/** Resolves with the exit code. The output goes to ours. */
function npm(args, env = {}) {
  // npm tells its scripts where it is itself; run by hand, this file looks for it on the PATH.
  const cli = process.env.npm_execpath;
  const [command, first] = cli === undefined ? ['npm', []] : [process.execPath, [cli]];
  const options = { stdio: ['ignore', 'inherit', 'inherit'], shell: cli === undefined, env: { ...process.env, ...env } };
  return new Promise((resolve, reject) => {
    spawn(command, [...first, ...args], options)
      .on('error', reject)
      .on('close', resolve);
  });
}

// Tests look into databases with better-sqlite3, and run the store on it. No package runs a script while it is installed (.npmrc), and a
// change of Node's version leaves a binding that does not load.
async function ensureSqliteDriver() {
  if (sqliteLoads()) return;
  console.log(
    'Building better-sqlite3 for the tests, which takes half a minute or more where no prebuilt binary can be fetched.',
  );
  // -O1 halves the time of the compiler.
  await npm(['rebuild', 'better-sqlite3', '--ignore-scripts=false'], { CFLAGS: '-O1', CXXFLAGS: '-O1' });
  if (sqliteLoads()) return;
  console.error('It could not be built. Type this to see why (it needs a C++ compiler and python3):');
  console.error('  npm rebuild better-sqlite3 --ignore-scripts=false --foreground-scripts');
  failedChecks.push('better-sqlite3');
}

function sqliteLoads() {
  const driver = createRequire(import.meta.url).resolve('better-sqlite3');
  return spawnSync(process.execPath, ['-e', `new (require(${JSON.stringify(driver)}))(':memory:').close()`]).status === 0;
}

async function runTests() {
  const { filter, options } = parseCLI(['vitest', 'run', ...selection]);
  const reporters = options.reporters ?? ['default', new TestProgress()];
  const vitest = await startVitest('test', filter, { ...options, watch: false, reporters });
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const module of vitest.state.getTestModules()) {
    let failedInside = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'failed') failedInside++;
      else if (state === 'passed') counts.passed++;
      else counts.skipped++;
    }
    // A file can fail without a failed test: it does not compile, a hook throws, something was left running.
    counts.failed += failedInside > 0 || module.state() !== 'failed' ? failedInside : 1;
    if (module.state() === 'failed') failedFiles.push(relative('.', module.moduleId));
  }
  counts.failed += vitest.state.getUnhandledErrors().length;
  // vitest fails runs for reasons of its own, such as a selection that selects nothing.
  if (counts.failed === 0 && process.exitCode) counts.failed = 1;
  await vitest.close();
  return counts;
}

function finish({ passed, failed, skipped }) {
  for (const name of failedChecks) console.error(`✗ ${name} failed, see above`);
  const failures = failed + failedChecks.length;
  if (failedFiles.length > 0) {
    const gate = process.env.HOLDFAST_GATE ? 'HOLDFAST_GATE=1 ' : '';
    console.error(`To repeat the files that failed: ${gate}npm test -- ${failedFiles.join(' ')}`);
  }
  console.log(`\n${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exit(failures > 0 ? 1 : 0);
}
