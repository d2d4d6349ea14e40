// The guard of all tests: a file that leaves something running fails, one that ends in time does not.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { paced } from '../support/wait/pace.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

const LEFT: Record<string, string> = {
  thread: "new (await import('node:worker_threads')).Worker('setInterval(() => {}, 1000)', { eval: true }).unref();",
  'child process': "(await import('node:child_process')).spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);",
  Timeout: 'setInterval(() => {}, 1000);',
  TCPServerWrap: "(await import('node:net')).createServer().listen(0);",
};
const IN_TIME = "new (await import('node:worker_threads')).Worker('', { eval: true }); setTimeout(() => {}, 200);";

let folder: string;
let messages: Map<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-leaks-'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const setupFiles = [join(root, 'test/support/wait/patience.ts'), join(root, 'test/support/run/leaks.ts')];
  writeFileSync(
    join(folder, 'vitest.config.mjs'),
    `export default ${JSON.stringify({ test: { pool: 'forks', maxWorkers: 2, setupFiles } })};`,
  );
  for (const [name, code] of Object.entries({ ...LEFT, 'in time': IN_TIME })) {
    writeFileSync(
      join(folder, `${name}.test.mjs`),
      `import { test } from 'vitest';\ntest('leaves it', async () => { ${code} });\n`,
    );
  }
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const report = join(folder, 'report.json');
  await new Promise((resolve) => {
    const env = { ...process.env, HOLDFAST_LEAK_PATIENCE_MS: String(paced(3000)) };
    execFile(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${report}`], { cwd: folder, env }, resolve);
  });
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: { name: string; message: string }[] };
  messages = new Map(testResults.map(({ name, message }) => [name.replace(/^.*\/|\.test\.mjs$/g, ''), message]));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(Object.keys(LEFT))('fails a test file that leaves a %s behind, and names it', (name) => {
  expect(messages.get(name)).toMatch(new RegExp(`left something running.*${name}`, 's'));
});

test('passes a test file whose thread and timer end a moment later', () => {
  expect(messages.get('in time')).toBe('');
});
