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
  embedLua(join(out, 'store', 'redis', 'driver', 'lua-texts.js'));
  for (const engine of ['postgres', 'sqlite']) embedSql(join(out, 'store', engine, 'driver', 'sql-texts.js'), engine);
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

/** Puts the Lua files into one module, because a bundle has no files beside its code. */
function embedLua(file) {
  const texts = textsOf(join('redis', 'lua'));
  writeFileSync(file, `const texts = ${texts};\nexport const luaText = (file) => texts[file];\n`);
}

/** Does the same with the SQL files. */
function embedSql(file, engine) {
  const texts = textsOf(join(engine, 'sql'));
  const files = "export const sqlFiles = () => Object.keys(texts).filter((file) => !file.includes('/'));";
  writeFileSync(file, `const texts = ${texts};\nexport const sqlText = (file) => texts[file];\n${files}\n`);
}

/** Returns the texts of all files in a folder of src/store/ by their paths, as an object in JavaScript. */
function textsOf(folder) {
  const top = join(import.meta.dirname, '..', 'src', 'store', folder);
  const texts = {};
  for (const entry of readdirSync(top, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    texts[relative(top, path).split(sep).join('/')] = withoutComments(readFileSync(path, 'utf8'));
  }
  return JSON.stringify(texts, null, 2);
}

/**
 * Drops comment lines, because the server gets the text as it is. The lines `-- use:` (Lua) and `-- include:` (SQL) stay: they name the
 * shared parts of a text.
 */
function withoutComments(text) {
  return text.replace(/^[ \t]*--(?! use: | include: ).*\n/gm, '');
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
