// Finds the entry file of the children of a sandbox: the user's option, the file beside this one, beside the bundle, or in the package.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../errors.js';
import { findOwnFile } from '../runtime/outside.js';

const ADVICE =
  'If this program was bundled, leave holdfast out of the bundle (external), or name the file with the option sandbox.entry: …/node_modules/holdfast/dist/sandbox/child-entry.js';

export function childFile(given: string | undefined): string {
  if (given !== undefined) {
    if (existsSync(given)) return given;
    throw new HoldfastError('INVALID_OPTION', `The file ${given}, the option sandbox.entry, does not exist.`, {
      option: 'sandbox.entry',
    });
  }
  const sibling = typeof __dirname === 'string' ? join(__dirname, 'child-entry.js') : undefined;
  if (sibling !== undefined && existsSync(sibling)) return sibling;
  const found = findOwnFile('child-entry', 'holdfast/sandbox-child');
  if (found !== undefined) return found;
  throw new HoldfastError('INVALID_OPTION', `The entry file of the sandbox was not found. ${ADVICE}`, {
    option: 'sandbox.entry',
  });
}
