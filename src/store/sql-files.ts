// SQL in files, for all engines that speak SQL. A line `-- include: part` stands for the text of shared/part.sql. A statement names its
// parameters (:queue); each engine replaces the names by what its driver takes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Reads the SQL files of an engine. */
export interface SqlFiles {
  /** `file`: a path below the folder. */
  sqlText(file: string): string;
  /** Returns the names of the files of the folder itself, without those of its folders. */
  sqlFiles(): string[];
}

const INCLUDE = /^[ \t]*-- include: ([\w-]+)\n/gm;
/** Not a cast (::), and not an assignment (:=). */
const PARAMETER = /(?<!:):([a-z]\w*)/g;

/** Reads the files of a folder. The build puts the texts into a module instead, so that bundles need no other files. */
export function sqlFilesOf(folder: string): SqlFiles {
  return {
    sqlText: (file) => readFileSync(join(folder, file), 'utf8'),
    sqlFiles: () => readdirSync(folder).filter((file) => file.endsWith('.sql')),
  };
}

/** Returns the text of a file with its includes. */
export function withIncludes(file: string, read: SqlFiles['sqlText']): string {
  return read(file).replace(INCLUDE, (_, part: string) => withIncludes(`shared/${part}.sql`, read));
}

/** Replaces each named parameter. */
export function replaceParameters(text: string, replace: (name: string) => string): string {
  return text.replace(PARAMETER, (_, name: string) => replace(name));
}
