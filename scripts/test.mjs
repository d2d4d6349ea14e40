// `npm test`: the gate. It builds, checks types, lint and formatting, and holds every promise, in ten minutes on two cores.
// `npm run test:all`: the same with every test on every store; CONTRIBUTING.md lists the difference.
// With arguments, which go to vitest (`npm test -- test/unit -t 'a name'`): build and the tests that they select, on every store.
// The last line counts: `N passed, N failed`. A failed check counts as one failure.
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseCLI, startVitest } from 'vitest/node';
import { build } from './build.mjs';
import { npm } from './npm.mjs';
import { buildSqliteDriver } from './sqlite-driver.mjs';
import { TestProgress } from './test-progress.mjs';

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))));
const all = process.argv[2] === '--all';
const selection = process.argv.slice(all ? 3 : 2);
const failedChecks = [];
const failedFiles = [];

// The driver is compiled on one core while the other does the rest. Tests look into databases with it, and run the store on it.
const driver = buildSqliteDriver().then((isThere) => isThere || failedChecks.push('better-sqlite3'));
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
