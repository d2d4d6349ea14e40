// Puts the modules of dist/ together. Each call between CommonJS modules costs a property access: on the memory store these took a quarter
// of the processor time of a job. Modules in one file call each other directly, and one file is read faster than a hundred.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** Modules that the lock thread, tests and measurements load by their path. */
const INNER_ENTRIES = [
  'background/thread-entry',
  'background/thread-file',
  'store/sqlite/index',
  'store/sqlite/driver/load',
  'store/sqlite/driver/sql',
  'store/sqlite/driver/sql-texts',
  'store/postgres/index',
  'store/postgres/driver/sql',
  'store/postgres/driver/sql-texts',
  'store/redis/index',
  'store/redis/driver/lua-texts',
  'store/redis/driver/scripts',
  'store/sections',
  'runtime/option-names',
  'store/contract/index',
  'renewal/session-checks',
  'maintenance/probe-interval',
  'maintenance/sweeper',
];

/** Packages that become part of dist/, so that the package has no dependencies. finish-build.mjs adds their licences. */
export const BUNDLED = ['croner'];

const THREAD_ENTRY = join('background', 'thread-entry.js');
/** A file with all that it needs in it. Each slot of a sandbox loads it, and the other chunks would take 7 MB of its memory. */
const CHILD_ENTRY = 'sandbox/child-entry';

/** Folders whose modules are a chunk of their own. An engine is loaded when it is used first. */
const APART = ['testing', 'compat', 'store/sqlite', 'store/postgres', 'store/redis'];

/**
 * Bundles ESM modules into CommonJS entries and chunks.
 * @param {string} out the folder of the modules
 * @param {string[]} entries modules that programs load, as paths below `out` without their ending
 * @returns {Promise<{ file: string, code: string }[]>}
 */
export async function bundle(out, entries) {
  // Loaded late: in a folder without node_modules, the build has said by now what to type.
  const { rolldown } = await import('rolldown');
  const settings = {
    cwd: out,
    platform: 'node',
    // Packages are loaded where the program has them.
    external: (id) => !id.startsWith('.') && !id.startsWith(out) && !isBundled(id),
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  };
  const format = { format: 'cjs', exports: 'named', esModule: true, entryFileNames: '[name].js', keepNames: true };
  const base = reachableFrom(join(out, THREAD_ENTRY), ...APART.filter(isEngine).map((engine) => join(out, engine, 'index.js')));
  const inputs = (names) => Object.fromEntries(names.map((entry) => [entry, join(out, `${entry}.js`)]));
  const bundled = await rolldown({
    ...settings,
    input: inputs([...entries, ...INNER_ENTRIES]),
    treeshake: false,
    preserveEntrySignatures: 'allow-extension',
  });
  const { output } = await bundled.generate({
    ...format,
    chunkFileNames: '[name].js',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'chunks', name: (module) => chunkOf(relative(out, module), base.has(module)) }],
    },
  });
  await bundled.close();
  const alone = await rolldown({ ...settings, input: inputs([CHILD_ENTRY]) });
  const child = await alone.generate(format);
  await alone.close();
  return [...output, ...child.output].map(({ fileName, code }) => ({ file: join(out, fileName), code }));
}

/** @param {string} id the name of a package, or the path of a file of it */
function isBundled(id) {
  return BUNDLED.some((name) => id === name || id.includes(join('node_modules', name, sep)));
}

/** The engines are chunks that the lock thread loads, too. */
function isEngine(folder) {
  return folder.startsWith(join('store', sep));
}

/** Returns the modules that load with the given ones. What they load later, with `import()`, is not among them. */
function reachableFrom(...files) {
  const found = new Set();
  while (files.length > 0) {
    const file = files.pop();
    if (found.has(file) || !existsSync(file)) continue;
    found.add(file);
    const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"]*["'](\.[^"']+)["']/gm);
    for (const [, path] of imports) files.push(join(dirname(file), path));
  }
  return found;
}

/**
 * The lock thread loads `base` and one engine: less than half of the code. All other modules are `core`. The entry of the lock thread stays
 * alone: loading it starts the thread.
 */
function chunkOf(module, isBase) {
  if (module === THREAD_ENTRY) return null;
  const folder = APART.find((each) => module.startsWith(join(each, sep)));
  if (folder !== undefined) return folder.split('/').pop();
  return isBase ? 'base' : 'core';
}
