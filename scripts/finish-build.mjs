// What the compiler cannot do for dist/. dist/ is CommonJS, because Jest loads nothing else on most versions of Node. The ESM entries
// re-export it, so a process has one copy of each class and of all state, however the package was loaded.
import { appendFileSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { BUNDLED, bundle } from './bundle.mjs';

/** The entries that ESM programs import, as paths below dist/ without their ending. */
const ENTRIES = ['index', 'compat/bull/index', 'compat/bun-queue/index', 'testing/index'];

/** The modules that find the entry files of threads and processes. */
const ENTRY_FINDERS = [
  ['background', 'thread-file.js', 'thread-entry.js'],
  ['sandbox', 'child-file.js', 'child-entry.js'],
];

/** @param {string} out a folder with the compiler's output, in ESM; it becomes dist/ */
export async function finishBuild(out) {
  embedTexts(join(out, 'store', 'redis', 'driver', 'lua-texts.js'), join('redis', 'lua'));
  for (const engine of ['postgres', 'sqlite'])
    embedTexts(join(out, 'store', engine, 'driver', 'sql-texts.js'), join(engine, 'sql'));
  embedVersion(join(out, 'runtime', 'version.js'));
  // These modules go into chunks of dist/ itself.
  for (const [folder, file, entry] of ENTRY_FINDERS)
    replaceIn(join(out, folder, file), `join(__dirname, '${entry}')`, `join(__dirname, '${folder}', '${entry}')`);
  replaceIn(join(out, 'store', 'sqlite', 'driver', 'prebuilt.js'), "join(__dirname, '../../../..')", "join(__dirname, '..')");
  const chunks = await bundle(out, ENTRIES);
  for (const file of modulesOf(out)) rmSync(file);
  for (const { file, code } of chunks) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, loadNodesModules(requireAtOnce(keepNativeImport(code), runtimeFrom(out, file))));
  }
  writeFileSync(join(out, 'package.json'), '{ "type": "commonjs" }\n');
  copyFileSync(join(import.meta.dirname, 'start-thread.mjs'), join(out, 'background', 'start-thread.mjs'));
  for (const name of BUNDLED) addLicence(name, out);
  requireTheClass(join(out, 'compat', 'bull'));
  for (const entry of ENTRIES) writeEsmEntry(out, entry);
}

function addLicence(name, out) {
  const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  copyFileSync(join(folder, 'LICENSE'), join(out, `LICENSE.${name}`));
}

function replaceIn(file, text, by) {
  const compiled = readFileSync(file, 'utf8');
  if (!compiled.includes(text)) throw new Error(`${file} does not hold ${text}, which the build replaces.`);
  writeFileSync(file, compiled.replace(text, by));
}

/** Bundlers leave the import of a module that the user names as it is. */
function keepNativeImport(code) {
  return code.replace(/\bimport\(specifier\)/, 'import(/* webpackIgnore: true */ /* @vite-ignore */ specifier)');
}

/**
 * Jest has no `import()` in CommonJS. A bundler forgives a package that is not there only if its `require` stands in the `try` itself,
 * not in a function inside of it.
 */
function requireAtOnce(code, runtime) {
  return code.replace(/\bimport\("([\w-]+)"\)/g, `require("${runtime}").__toESM(require("$1"))`);
}

function runtimeFrom(out, file) {
  const path = relative(dirname(file), join(out, 'rolldown-runtime.js')).split(sep).join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

/** An ESM bundle has no `require`: esbuild puts a function there that throws. What Node itself brings can be had without it. */
function loadNodesModules(code) {
  return code.replace(/\brequire\((["']node:[\w/]+["'])\)/g, 'process.getBuiltinModule($1)');
}

function modulesOf(out) {
  return readdirSync(out, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Puts the SQL or Lua files of an engine into the module that reads them, because a bundle has no files beside its code. */
function embedTexts(file, folder) {
  const top = join(import.meta.dirname, '..', 'src', 'store', folder);
  const texts = readdirSync(top).map((name) => [name, withoutComments(readFileSync(join(top, name), 'utf8'))]);
  writeFileSync(file, `export const texts = ${JSON.stringify(Object.fromEntries(texts), null, 2)};\n`);
}

/** Drops comment lines, because the server gets the text as it is. Those that begin sections and name parts stay (store/sections.ts). */
function withoutComments(text) {
  return text.replace(/^[ \t]*--(?! (?:name|part|use|include): ).*\n/gm, '');
}

/** A bundle has no package.json beside its code, or that of another package. */
function embedVersion(file) {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'));
  writeFileSync(file, `export const VERSION = ${JSON.stringify(version)};\n`);
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
  const own = entry === 'index' ? 'default' : 'Queue as default';
  const types = names.includes('default') ? `export { ${own} } from '${target}';\n` : '';
  writeFileSync(join(out, `${entry}.d.mts`), `export * from '${target}';\n${types}`);
}
