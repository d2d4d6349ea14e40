// Reads the SQL files. The build replaces this file by one that contains all SQL texts without their comments, so that bundles need no
// other files (scripts/finish-build.mjs).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `file`: a path below sql/. */
export function sqlText(file: string): string {
  return readFileSync(join(__dirname, 'sql', file), 'utf8');
}

/** Returns the names of the files of sql/ itself, without those of its folders. */
export function sqlFiles(): string[] {
  return readdirSync(join(__dirname, 'sql')).filter((file) => file.endsWith('.sql'));
}
