// The text that a program prints about the SQLite file that it uses because it named no store.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const run = promisify(execFile);
const dist = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
const PROGRAM = `const { Queue, Worker } = require(${JSON.stringify(dist)});
async function main() {
  const connection = process.env.CONNECTION;
  const queues = ['a', 'b'].map((name) => new Queue(name, connection === undefined ? {} : { connection }));
  const worker = new Worker('a', async () => 1, connection === undefined ? {} : { connection });
  await Promise.all(queues.map((queue) => queue.add('job', {})));
  await new Promise((resolve) => worker.once('completed', resolve));
  await Promise.all([...queues, worker].map((each) => each.close()));
}
void main();
`;

async function stderrOf(cwd: string, env: Record<string, string> = {}): Promise<string> {
  const { HOLDFAST_URL: _, ...inherited } = process.env;
  const { stderr } = await run(process.execPath, ['-e', PROGRAM], { cwd, env: { ...inherited, ...env }, timeout: 20_000 });
  return stderr;
}

function emptyFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-default-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('warns with the path of the default file when it makes one, once per process and folder', async () => {
  const folder = emptyFolder();
  const other = join(folder, 'worker');
  mkdirSync(other);
  for (const cwd of [folder, other]) {
    const stderr = await stderrOf(cwd);
    expect(stderr.match(/HOLDFAST_DEFAULT_FILE/g)).toHaveLength(1);
    expect(stderr).toContain(join(cwd, 'holdfast.db'));
    expect(stderr).toContain('HOLDFAST_URL=sqlite:');
  }
});

test('does not warn when the default file exists, or when the user named it', async () => {
  const folder = emptyFolder();
  expect(await stderrOf(folder, { HOLDFAST_URL: 'sqlite:holdfast.db' })).toBe('');
  expect(await stderrOf(folder)).toBe('');
  expect(await stderrOf(folder, { CONNECTION: 'sqlite:other.db' })).toBe('');
});
