// `npm run cost`: counts what one job costs each store, and prints the change against test/cost/table.txt.
// `npm run cost -- --write`: writes the table anew too. docs/contributing/cost.md says what the counts are.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const unknown = process.argv.slice(2).find((arg) => arg !== '--write');
if (unknown !== undefined) {
  console.error(`npm run cost knows no ${unknown}: npm run cost -- --write`);
  process.exit(1);
}
const HOLDFAST_COST = process.argv.includes('--write') ? 'write' : 'print';
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const args = ['run', 'test/cost', '-t', 'costs no more than', '--reporter=dot', '--disable-console-intercept'];
const root = dirname(dirname(fileURLToPath(import.meta.url)));
spawn(process.execPath, [vitest, ...args], { cwd: root, stdio: 'inherit', env: { ...process.env, HOLDFAST_COST } }).on(
  'close',
  (code) => {
    process.exitCode = code ?? 1;
  },
);
