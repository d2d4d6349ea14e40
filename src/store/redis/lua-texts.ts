// The Lua files as texts. The build replaces this file by one that holds all of them, so that bundles need no files beside them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `file`: a path below lua/. */
export function luaText(file: string): string {
  return readFileSync(join(__dirname, 'lua', file), 'utf8');
}
