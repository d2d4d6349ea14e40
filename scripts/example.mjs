// `npm run example -- <name>`: builds the package, compiles examples/ against it and runs one of them in an empty folder.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { compilePrograms } from './compile-programs.mjs';

const examples = join(dirname(dirname(fileURLToPath(import.meta.url))), 'examples');
const PROGRAM = /\.(ts|js|mjs|cjs)$/;
const programsIn = (folder) => readdirSync(folder, { recursive: true }).filter((file) => PROGRAM.test(file));
const nameOf = (file) => file.replace(PROGRAM, '').replaceAll(sep, '/');
const names = programsIn(examples).map(nameOf);
const name = nameOf(process.argv[2] ?? '').replace(/^examples\//, '');

if (names.includes(name)) await run();
else {
  console.error(`npm run example -- <name>, where <name> is one of: ${names.join(', ')}`);
  process.exitCode = 1;
}

async function run() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-example-'));
  try {
    await build();
    cpSync(examples, join(folder, 'src'), { recursive: true, filter: (path) => basename(path) !== 'tsconfig.json' });
    const messages = compilePrograms(folder);
    if (messages.length > 0) throw new Error(messages.join('\n'));
    const program = programsIn(join(folder, 'out')).find((file) => nameOf(file) === name);
    process.exitCode = spawnSync(process.execPath, [join(folder, 'out', program)], { cwd: folder, stdio: 'inherit' }).status ?? 1;
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
