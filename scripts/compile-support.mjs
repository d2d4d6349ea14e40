// What tests start servers and break connections with (test/support), for programs that Node 20 runs without vitest: it is TypeScript.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { tsc } from './build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = join(root, 'test', 'support');
const PROGRAMS = ['servers/guard.sh', 'servers/shifted-date.mjs'];

/**
 * Compiles files of test/support and what they import; they are gone when this process ends.
 * @param {string[]} files such as 'servers/redis.ts'
 * @returns {(file: string) => Promise<any>} imports one of them
 */
export function compileSupport(files) {
  // In node_modules, where its own imports are found and nobody lints it.
  const folder = join(root, 'node_modules', '.cache', `holdfast-support-${process.pid}`);
  const out = join(folder, 'out');
  mkdirSync(folder, { recursive: true });
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const compilerOptions = { noEmit: false, noCheck: true, declaration: false, rootDir: SOURCES, outDir: out };
  const config = join(folder, 'tsconfig.json');
  const chosen = files.map((file) => join(SOURCES, file));
  writeFileSync(config, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files: chosen, include: [] }));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`test/support does not compile.\n${stdout}${stderr}`);
  for (const program of PROGRAMS) cpSync(join(SOURCES, program), join(out, program));
  return (file) => import(pathToFileURL(join(out, file.replace(/\.ts$/, '.js'))).href);
}
