// What the compiler cannot do for dist/: dist/ is CommonJS, because Jest loads nothing else on most versions of Node. The ESM entries
// re-export it, so a process has one copy of each class and of all state, however the package was loaded.
import { appendFileSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';

/** The entries that ESM programs import, as paths below dist/ without their ending. */
const ENTRIES = ['index', 'compat/bull/index', 'compat/bun-queue/index', 'testing/index'];

/** @param {string} out a folder with the compiler's output, which becomes dist/ */
export function finishBuild(out) {
  writeFileSync(join(out, 'package.json'), '{ "type": "commonjs" }\n');
  keepNativeImport(join(out, 'runtime', 'import-module.js'));
  for (const file of compiledFiles(out)) {
    requireAtOnce(file);
    loadNodesModules(file);
  }
  copyFileSync(join(import.meta.dirname, 'start-thread.mjs'), join(out, 'background', 'start-thread.mjs'));
  embedLua(join(out, 'store', 'redis', 'lua-texts.js'));
  embedVersion(join(out, 'runtime', 'version.js'));
  requireTheClass(join(out, 'compat', 'bull'));
  for (const entry of ENTRIES) writeEsmEntry(out, entry);
}

/** The compiler turns `import()` into `require()`, which cannot load every module that a user may name. */
function keepNativeImport(file) {
  const compiled = readFileSync(file, 'utf8');
  const [call] = /Promise\.resolve\(`\$\{specifier\}`\)\.then\(.*?require\(s\)\)\)/.exec(compiled) ?? [];
  if (call === undefined) throw new Error(`${file} holds no import() that the build knows.`);
  writeFileSync(file, compiled.replace(call, 'import(/* webpackIgnore: true */ /* @vite-ignore */ specifier)'));
}

/** A bundler forgives a package that is not there only if its `require` stands in the `try` itself, not in a function inside of it. */
function requireAtOnce(file) {
  const compiled = readFileSync(file, 'utf8');
  const direct = compiled.replace(/Promise\.resolve\(\)\.then\(\(\) => (__importStar\(require\('.*?'\)\))\)/g, '$1');
  if (direct !== compiled) writeFileSync(file, direct);
}

/** An ESM bundle has no `require`: esbuild puts a function there that throws. What Node itself brings can be had without it. */
function loadNodesModules(file) {
  const compiled = readFileSync(file, 'utf8');
  const direct = compiled.replace(/\brequire\((["']node:[\w/]+["'])\)/g, 'process.getBuiltinModule($1)');
  if (direct !== compiled) writeFileSync(file, direct);
}

function compiledFiles(out) {
  return readdirSync(out, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Puts the Lua files into one module, because a bundle has no files beside its code. */
function embedLua(file) {
  const lua = join(import.meta.dirname, '..', 'src', 'store', 'redis', 'lua');
  const texts = {};
  for (const entry of readdirSync(lua, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    texts[relative(lua, path).split(sep).join('/')] = withoutComments(readFileSync(path, 'utf8'));
  }
  writeFileSync(
    file,
    `'use strict';\nconst texts = ${JSON.stringify(texts, null, 2)};\nexports.luaText = (file) => texts[file];\n`,
  );
}

/** Drops comment lines, because Redis gets the text as it is. The line `-- use:` stays: it names the shared parts of a script. */
function withoutComments(lua) {
  return lua.replace(/^[ \t]*--(?! use: ).*\n/gm, '');
}

/** A bundle has no package.json beside its code, or that of another package. */
function embedVersion(file) {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'));
  writeFileSync(file, `'use strict';\nexports.VERSION = ${JSON.stringify(version)};\n`);
}

/** Bull's users write `const Queue = require('bull')`. */
function requireTheClass(folder) {
  appendFileSync(join(folder, 'index.js'), 'module.exports = exports.Queue;\n');
  writeFileSync(join(folder, 'required.d.ts'), "import { Queue } from './index.js';\nexport = Queue;\n");
}

function writeEsmEntry(out, entry) {
  const names = Object.keys(createRequire(import.meta.url)(join(out, `${entry}.js`))).sort();
  const target = `./${entry.split('/').pop()}.js`;
  const start = relative(dirname(entry), 'background/start-thread.mjs').split(sep).join('/');
  const imports = `import '${start.startsWith('.') ? start : `./${start}`}';\n`;
  writeFileSync(join(out, `${entry}.mjs`), `${imports}export { ${names.join(', ')} } from '${target}';\n`);
  // To ESM, the default of a CommonJS module is the module: a default of our own is that under another name.
  const types = names.includes('default') ? `export { Queue as default } from '${target}';\n` : '';
  writeFileSync(join(out, `${entry}.d.mts`), `export * from '${target}';\n${types}`);
}
