// Finds files and packages that bundled code needs from outside its bundle. Bundled code runs in another folder than it was written for,
// and an ESM bundle has neither `require` nor `__dirname`. So packages are searched from each place where the program may have them.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toError } from '../errors.js';

const EXTENSIONS = ['.js', '.mjs', '.cjs'];

let esmFile: string | undefined;

/** `url`: the URL of the ESM entry. Undefined in CommonJS bundles. */
export function setEsmFile(url: string | undefined): void {
  esmFile = url?.startsWith('file:') === true ? fileURLToPath(url) : undefined;
}

/** Returns the folders that this code may be in. A bundler puts its other files there. */
export function ownFolders(): string[] {
  const started = process.argv[1];
  const folders = [
    typeof __dirname === 'string' ? __dirname : undefined,
    esmFile === undefined ? undefined : dirname(esmFile),
    // In a thread, argv[1] is the file of the thread.
    started === undefined ? undefined : dirname(started),
  ];
  return [...new Set(folders.filter((folder) => folder !== undefined))];
}

/**
 * Finds a file of this package: beside the bundle, with the extension that the bundler was set to, or in the package. Returns undefined if
 * it is in neither place.
 */
export function findOwnFile(name: string, specifier: string): string | undefined {
  for (const folder of ownFolders()) {
    const file = EXTENSIONS.map((extension) => join(folder, `${name}${extension}`)).find((path) => existsSync(path));
    if (file !== undefined) return file;
  }
  try {
    return resolveOutside(specifier);
  } catch {
    return undefined;
  }
}

/** Resolves a package from outside the bundle. Throws the error of the last place that was searched. */
export function resolveOutside(specifier: string): string {
  return fromOutside((require) => require.resolve(specifier));
}

/** The errors of esbuild, Rollup and Node for a `require` in an ESM bundle. */
const NO_REQUIRE = /^Dynamic require of |^Could not dynamically require |^require is not defined/;

/**
 * Loads a package whose `require` failed because an ESM bundle has no `require`. Throws `reason` if the package failed for another reason,
 * and an error with advice if the package is not found.
 */
export function requireOutside(specifier: string, reason: unknown): unknown {
  const error = toError(reason);
  if (!NO_REQUIRE.test(error.message)) throw error;
  try {
    return fromOutside((require) => require(specifier) as unknown);
  } catch (cause) {
    const advice = `In an ESM bundle, install ${specifier} and leave it out of the bundle (external)`;
    throw new Error(`${error.message.split('\n')[0]}. ${advice}`, { cause });
  }
}

function fromOutside<T>(find: (require: NodeJS.Require) => T): T {
  let reason: unknown;
  for (const folder of [...ownFolders(), process.cwd()]) {
    try {
      return find(createRequire(join(folder, 'index.js')));
    } catch (error) {
      reason = error;
    }
  }
  throw toError(reason);
}
