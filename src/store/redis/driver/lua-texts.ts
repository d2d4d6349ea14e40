// Reads the Lua files. The build replaces this file by one that contains all Lua texts without their comments, so that bundles need no
// other files (scripts/finish-build.mjs).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `file`: a path below lua/. */
export function luaText(file: string): string {
  return readFileSync(join(__dirname, '..', 'lua', file), 'utf8');
}
