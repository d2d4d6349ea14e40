// The SQL stands for itself: the comments of its sections name the states whose numbers they use, and nothing is left over.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Database, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { sql, sqlOf } from '../../../src/store/sqlite/driver/sql.js';
import { sectionsOf, textsIn } from '../../../src/store/sections.js';
import { APPLICATION_ID, SCHEMA_VERSION, STATE } from '../../../src/store/sqlite/state/schema.js';

const ENGINE = new URL('../../../src/store/sqlite/', import.meta.url);
const files = textsIn(fileURLToPath(new URL('sql/', ENGINE)));
const { operations, parts } = sectionsOf(files);
const sections = [...operations.keys(), ...Array.from(parts.keys(), (name) => `part ${name}`)];
const textOf = (section: string): string => operations.get(section) ?? parts.get(section.slice('part '.length)) ?? '';
const codeOf = (section: string): string => textOf(section).replace(/^\s*--(?! include: ).*\n/gm, '');
const typescript = readdirSync(ENGINE, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(new URL(file.replaceAll('\\', '/'), ENGINE), 'utf8'))
  .join('\n');

const opened = async (): Promise<Database> => (await loadDriver()).open(':memory:');

describe('a section of SQL of the SQLite store', () => {
  test('begins with a comment', () => {
    expect(sections.length).toBeGreaterThan(200);
    expect(sections.filter((section) => !/^-- [A-Z`_]/.test(textOf(section)))).toEqual([]);
    expect(Object.entries(files).filter(([, text]) => !/^-- [A-Z`_]/.test(text))).toEqual([]);
  });

  test('names the states whose numbers it uses, as TypeScript does', () => {
    const known = Object.entries(STATE).map(([name, number]) => `${number} ${name}`);
    const wrong = sections.filter((file) => {
      const named = [...textOf(file).matchAll(/^ *-- States: (.*)\.$/gm)].flatMap(([, list = '']) => list.split(', '));
      const used = [...codeOf(file).matchAll(/\bstate (?:=|<>|<|>=) (\d)\b/g)].map(([, number]) => number);
      const unnamed = used.filter((number) => !named.some((state) => state.startsWith(`${number} `)));
      return !file.startsWith('schema/') && (named.some((state) => !known.includes(state)) || unnamed.length > 0);
    });
    expect(wrong).toEqual([]);
    expect(sections.filter((section) => textOf(section).includes('-- States:')).length).toBeGreaterThan(15);
  });

  test('is one statement', () => {
    const several = sections.filter((section) => !section.startsWith('schema/') && codeOf(section).includes(';'));
    expect(several).toEqual([]);
  });

  test('includes what exists, and every part is included at least twice', () => {
    for (const name of operations.keys()) expect(sqlOf(name)).not.toContain('-- include:');
    const all = Object.values(files).join('\n');
    expect([...parts.keys()].filter((part) => all.split(`-- include: ${part}\n`).length < 3)).toEqual([]);
  });

  test('is used by TypeScript', () => {
    const unused = [...operations.keys()].filter((name) => {
      const shown = [name, name.replace('schema/', ''), name.replace(/^list-\w+$/, 'list-${part}')];
      return !shown.some((text) => typescript.includes(`'${text}'`) || typescript.includes(`\`${text}\``));
    });
    expect(unused).toEqual([]);
  });
});

test('TypeScript of the SQLite store builds no SQL', () => {
  const built = [...typescript.matchAll(/`[^`]*\b(?:SELECT|INSERT|UPDATE|DELETE|PRAGMA|ALTER|CREATE)\b[^`]*`/g)].map(
    ([text]) => text,
  );
  expect(built.filter((text) => text.includes('${'))).toEqual([]);
});

test('a statement takes exactly the values that its caller lists, in the order of the list', async () => {
  const db = await opened();
  db.exec(sqlOf('schema/1-tables'));
  const set = sql(db, 'set-clock', 'offset boot');
  set.run(7, 'b');
  expect(sql(db, 'read-clock').get()).toEqual(['b', 7]);
  expect(() => sql(db, 'set-clock', 'offset')).toThrow('The statement set-clock does not have exactly these parameters: offset');
  expect(() => sql(db, 'set-clock', 'offset boot more')).toThrow('exactly these parameters');
  db.close();
});

test('the schema has the numbers that TypeScript has', () => {
  const versions = [...operations.keys()].filter((name) => /^schema\/\d/.test(name)).sort();
  expect(versions).toHaveLength(SCHEMA_VERSION);
  versions.forEach((file, index) => expect(textOf(file)).toContain(`PRAGMA user_version = ${index + 1};`));
  expect(textOf('schema/mark-as-ours')).toContain(`PRAGMA application_id = ${APPLICATION_ID};`);
});

test('the build embeds every line of code of every SQL file, and no comment but those that begin sections and name parts', () => {
  const built = createRequire(import.meta.url)('../../../dist/store/sqlite/driver/sql-texts.js') as { texts: typeof files };
  const kept = (text: string): string => text.replace(/^[ \t]*--(?! (?:name|part|include): ).*\n/gm, '');
  expect(built.texts).toEqual(Object.fromEntries(Object.entries(files).map(([file, text]) => [file, kept(text)])));
});
