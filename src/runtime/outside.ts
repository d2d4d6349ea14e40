// Files and packages that code inside a bundle needs from outside of it. Such code lies elsewhere than it was written, and in an ESM bundle
// it has neither `require` nor `__dirname`: packages are looked for from each place where the program may have them.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toError } from '../errors.js';

let esmFile: string | undefined;

/** `url`: of the ESM entry. Undefined in bundles that are CommonJS. */
export function setEsmFile(url: string | undefined): void {
  esmFile = url?.startsWith('file:') === true ? fileURLToPath(url) : undefined;
}

/** The folders that this code may be in: a bundler puts its other files there. */
export function ownFolders(): string[] {
  const started = process.argv[1];
  const folders = [
    typeof __dirname === 'string' ? __dirname : undefined,
    esmFile === undefined ? undefined : dirname(esmFile),
    // In a thread, the file of the thread.
    started === undefined ? undefined : dirname(started),
  ];
  return [...new Set(folders.filter((folder) => folder !== undefined))];
}

/** Throws the error of the last place. */
export function resolveOutside(specifier: string): string {
  return fromOutside((require) => require.resolve(specifier));
}

/** For a package whose `require` failed with `reason`: an ESM bundle has none. Throws where the package is not found here either. */
export function requireOutside(specifier: string, reason: unknown): unknown {
  if ((reason as NodeJS.ErrnoException).code?.endsWith('MODULE_NOT_FOUND') === true) throw toError(reason);
  try {
    return fromOutside((require) => require(specifier) as unknown);
  } catch (error) {
    const [first = ''] = String((reason as Error).message).split('\n');
    throw new Error(
      `${first}. If this program is an ESM bundle, install ${specifier} and leave it out of the bundle (external)`,
      {
        cause: error,
      },
    );
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
