// Product code as one simulated process sees it. The modules are compiled once, as functions whose globals (timers, clocks, random
// numbers) are parameters, and called anew for each process and each lock thread: every one of them has its own module state, as in
// reality, and nothing of the test process is patched. Modules that touch none of it are shared by all, which makes a process cheap.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { compileFunction } from 'node:vm';
import { modulesFolder } from '../scripts/compile-modules.mjs';

export const AMBIENT = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'Date',
  'performance',
  'process',
  'console',
  'Math',
  'Atomics',
];
/** Node's modules of which a process has its own. */
const OWN_BUILTINS = ['node:crypto', 'node:os', 'node:perf_hooks', 'node:timers', 'node:timers/promises', 'node:worker_threads'];
const PARAMETERS = ['exports', 'require', 'importOne', '__dirname', ...AMBIENT];
/** Atomics and Math alone make a module no part of a process: they are replaced for `wait` and `random`. */
const USES_AMBIENT = new RegExp(
  `\\b(${AMBIENT.filter((name) => name !== 'Atomics' && name !== 'Math').join('|')})\\b|Atomics\\.wait|Math\\.random`,
);

/** What only speaks of processes has none of its own: errors must be the same to all, or nobody knows those that come from the store. */
const SAID = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'/g;

const nodeRequire = createRequire(import.meta.url);
const modules = modulesFolder();
const compiled = new Map();

export class Realm {
  #ambient;
  #builtins;
  #modules = new Map();
  #shared;
  #bend;
  #foreign;

  /** `shared` is for all realms with the same `bend`, which may replace what a module exports. `foreign` are modules that users wrote. */
  constructor({ ambient, builtins, shared, bend = {}, foreign = {} }) {
    this.#ambient = AMBIENT.map((name) => ambient[name]);
    this.#builtins = builtins;
    this.#shared = shared;
    this.#bend = bend;
    // A defect in a module that was renamed would never be planted.
    for (const file of Object.keys(bend))
      if (!existsSync(join(modules, file))) throw new Error(`There is no module ${file} to bend.`);
    this.#foreign = foreign;
  }

  /** `file` is a path below src/, with the ending of a compiled file. */
  load(file) {
    const code = compile(file);
    const modules = code.isShared ? this.#shared : this.#modules;
    let exports = modules.get(file);
    if (exports === undefined) {
      exports = {};
      modules.set(file, exports);
      const require = (name) => {
        const imported = code.files.get(name);
        return imported === undefined ? (this.#builtins[name] ?? nodeRequire(name)) : this.load(imported);
      };
      const importOne = async (name) => this.#foreign[name] ?? this.load(resolve(file, name));
      code.run(exports, require, importOne, code.folder, ...this.#ambient);
      const bend = this.#bend[file];
      if (bend !== undefined) Object.assign(exports, bend(exports, this));
    }
    return exports;
  }
}

function isFile(name) {
  return name.startsWith('.');
}

function resolve(from, name) {
  return posix.join(posix.dirname(from), name);
}

function compile(file) {
  let code = compiled.get(file);
  if (code === undefined) {
    const path = join(modules, file);
    const { text, imports } = asFunctionBody(readFileSync(path, 'utf8'));
    const files = new Map(imports.filter(isFile).map((name) => [name, resolve(file, name)]));
    const isShared =
      !USES_AMBIENT.test(text.replace(SAID, '')) &&
      !/\bimportOne\(|\b__dirname\b|^let /m.test(text) &&
      imports.every((name) => files.has(name) || !OWN_BUILTINS.includes(name)) &&
      [...files.values()].every((imported) => compile(imported).isShared);
    code = { run: compileFunction(text, PARAMETERS, { filename: path }), isShared, files, folder: dirname(path) };
    compiled.set(file, code);
  }
  return code;
}

/** The compiler writes an import as `require` with double quotes, and `import()` as `require` with the quotes of the source. */
function asFunctionBody(built) {
  const imports = [...built.matchAll(/\brequire\("(.*?)"\)/g)].map(([, name]) => name);
  const text = built.replace(/__importStar\(require\((s|'.*?')\)\)/g, 'importOne($1)');
  return { text, imports };
}
