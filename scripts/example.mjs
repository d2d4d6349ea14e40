// `npm run example -- <name>`: builds the package, compiles examples/ against it and runs one of them in an empty folder.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { compilePrograms } from './compile-programs.mjs';

const examples = join(dirname(dirname(fileURLToPath(import.meta.url))), 'examples');
const names = readdirSync(examples)
  .filter((file) => /\.(ts|js|mjs|cjs)$/.test(file))
  .map((file) => basename(file, extname(file)));
const name = basename(process.argv[2] ?? '').replace(/\.(ts|js|mjs|cjs)$/, '');

if (names.includes(name)) run();
else {
  console.error(`npm run example -- <name>, where <name> is one of: ${names.join(', ')}`);
  process.exitCode = 1;
}

function run() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-example-'));
  try {
    build();
    cpSync(examples, join(folder, 'src'), { recursive: true, filter: (path) => basename(path) !== 'tsconfig.json' });
    const messages = compilePrograms(folder);
    if (messages.length > 0) throw new Error(messages.join('\n'));
    const program = readdirSync(join(folder, 'out')).find((file) => basename(file, extname(file)) === name);
    process.exitCode = spawnSync(process.execPath, [join(folder, 'out', program)], { cwd: folder, stdio: 'inherit' }).status ?? 1;
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
