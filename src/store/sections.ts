// SQL and Lua in files: one file per facet, cut into sections. The line `-- name: x` begins the text of an operation, `-- part: x` a text
// that several operations share. A section ends where the next one begins; above the first one stands the header of the file.
// In SQL, a line `-- include: x` stands for a part. A statement names its parameters (:queue); each engine replaces the names by what its
// driver takes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The texts of the sections of an engine, by their names. */
export interface Sections {
  operations: ReadonlyMap<string, string>;
  parts: ReadonlyMap<string, string>;
}

const SECTION = /^-- (name|part): ([\w/-]+)\n/m;
const INCLUDE = /^[ \t]*-- include: ([\w-]+)\n/gm;
/** Not a cast (::), and not an assignment (:=). */
const PARAMETER = /(?<!:):([a-z]\w*)/g;

/** Reads the files of a folder. The build puts the texts into a module instead, so that bundles need no other files. */
export function textsIn(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
}

/** `texts`: of files, by their names. */
export function sectionsOf(texts: Record<string, string>): Sections {
  const operations = new Map<string, string>();
  const parts = new Map<string, string>();
  for (const [file, text] of Object.entries(texts)) {
    const [, ...pieces] = text.split(SECTION);
    for (let at = 0; at < pieces.length; at += 3) {
      const [kind, name = '', body = ''] = pieces.slice(at, at + 3);
      const sections = kind === 'name' ? operations : parts;
      if (sections.has(name)) throw new Error(`${file} has a second section ${kind}: ${name}`);
      sections.set(name, `${body.trimEnd()}\n`);
    }
  }
  return { operations, parts };
}

/** Returns the text of an operation with its includes. */
export function operationText(name: string, { operations, parts }: Sections): string {
  return withIncludes(textOf(name, operations), parts);
}

/** Returns the text of a part with its includes. */
export function partText(name: string, { parts }: Sections): string {
  return withIncludes(textOf(name, parts), parts);
}

function withIncludes(text: string, parts: Sections['parts']): string {
  return text.replace(INCLUDE, (_, part: string) => withIncludes(textOf(part, parts), parts));
}

function textOf(name: string, sections: ReadonlyMap<string, string>): string {
  const text = sections.get(name);
  if (text === undefined) throw new Error(`No section has the name ${name}`);
  return text;
}

/** Replaces each named parameter. */
export function replaceParameters(text: string, replace: (name: string) => string): string {
  return text.replace(PARAMETER, (_, name: string) => replace(name));
}
