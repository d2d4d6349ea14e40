// Compiles programs that use the package the way its users do: 'holdfast' is the built package, found in node_modules. One run
// of the compiler for all of them, because starting it costs more than the programs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tsc } from './build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Compiles the .ts, .js, .mjs and .cjs files in `folder`/src into `folder`/out; both keep their names.
 * @param {string} folder
 * @returns {string[]} the compiler's messages, each starting with `src/<file>(<line>,<column>)`; what it could compile is there
 */
export function compilePrograms(folder) {
  mkdirSync(join(folder, 'node_modules', '@types'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules', 'holdfast'), 'dir');
  // Programs that share a SQLite file with Holdfast need the same copy of its driver.
  for (const name of ['better-sqlite3', '@types/better-sqlite3'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'dir');
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }));
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023'],
    module: 'nodenext',
    strict: true,
    skipLibCheck: true,
    allowJs: true,
    // A program without an import is a module all the same, with names of its own.
    moduleDetection: 'force',
    typeRoots: [join(root, 'node_modules', '@types')],
    types: ['node'],
    rootDir: 'src',
    outDir: 'out',
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
  const { stdout, stderr, status } = spawnSync(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  // Further lines of a message are indented.
  const messages = `${stdout}${stderr}`.split(/\r?\n(?=\S)/).filter((message) => message.trim() !== '');
  if (status !== 0 && messages.length === 0) messages.push(`tsc ended with ${status}`);
  return messages.map((message) => message.trimEnd());
}
