// The SQL files stand for themselves: their headers name the states whose numbers they use, and nothing in them is left over.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { type Database, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { sql, sqlOf } from '../../../src/store/sqlite/driver/sql.js';
import { APPLICATION_ID, SCHEMA_VERSION, STATE } from '../../../src/store/sqlite/state/schema.js';

const ENGINE = new URL('../../../src/store/sqlite/', import.meta.url);
const FOLDER = new URL('sql/', ENGINE);
const pathsIn = (folder: URL, end: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => file.replaceAll('\\', '/'));
const files = pathsIn(FOLDER, '.sql');
const textOf = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');
const codeOf = (file: string): string => textOf(file).replace(/^\s*--(?! include: ).*\n/gm, '');
const typescript = pathsIn(ENGINE, '.ts')
  .map((file) => readFileSync(new URL(file, ENGINE), 'utf8'))
  .join('\n');

const opened = async (): Promise<Database> => (await loadDriver()).open(':memory:');

describe('an SQL file of the SQLite store', () => {
  test('begins with a comment', () => {
    expect(files.length).toBeGreaterThan(120);
    expect(files.filter((file) => !/^-- [A-Z`_]/.test(textOf(file)))).toEqual([]);
  });

  test('names the states whose numbers it uses, as TypeScript does', () => {
    const known = Object.entries(STATE).map(([name, number]) => `${number} ${name}`);
    const wrong = files.filter((file) => {
      const named = /^-- States: (.*)\.$/m.exec(textOf(file))?.[1]?.split(', ') ?? [];
      const used = [...codeOf(file).matchAll(/\bstate (?:=|<>|<|>=) (\d)\b/g)].map(([, number]) => number);
      const unnamed = used.filter((number) => !named.some((state) => state.startsWith(`${number} `)));
      return !file.startsWith('schema/') && (named.some((state) => !known.includes(state)) || unnamed.length > 0);
    });
    expect(wrong).toEqual([]);
    expect(files.filter((file) => textOf(file).includes('-- States:')).length).toBeGreaterThan(15);
  });

  test('is one statement', () => {
    const several = files.filter((file) => !file.startsWith('schema/') && codeOf(file).includes(';'));
    expect(several).toEqual([]);
  });

  test('includes what exists, and every shared part is included somewhere', () => {
    for (const file of files) expect(sqlOf(file.replace('.sql', ''))).not.toContain('-- include:');
    const all = files.map(textOf).join('\n');
    const parts = files.filter((file) => file.startsWith('shared/')).map((file) => file.slice('shared/'.length, -'.sql'.length));
    expect(parts.filter((part) => !all.includes(`-- include: ${part}\n`))).toEqual([]);
  });

  test('is used by TypeScript', () => {
    const names = files.filter((file) => !file.startsWith('shared/')).map((file) => file.replace('.sql', ''));
    const unused = names.filter((name) => {
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
  db.exec(sqlOf('schema/1-first'));
  const set = sql(db, 'set-clock', 'offset boot');
  set.run(7, 'b');
  expect(sql(db, 'read-clock').get()).toEqual(['b', 7]);
  expect(() => sql(db, 'set-clock', 'offset')).toThrow('sql/set-clock.sql does not have exactly these parameters: offset');
  expect(() => sql(db, 'set-clock', 'offset boot more')).toThrow('exactly these parameters');
  db.close();
});

test('the schema has the numbers that TypeScript has', () => {
  const versions = files.filter((file) => /^schema\/\d/.test(file)).sort();
  expect(versions).toHaveLength(SCHEMA_VERSION);
  versions.forEach((file, index) => expect(textOf(file)).toContain(`PRAGMA user_version = ${index + 1};`));
  expect(textOf('schema/mark-as-ours.sql')).toContain(`PRAGMA application_id = ${APPLICATION_ID};`);
});

test('the build embeds every line of code of every SQL file, and no comment but the includes', () => {
  const built = createRequire(import.meta.url)('../../../dist/store/sqlite/driver/sql-texts.js') as {
    sqlText(file: string): string;
  };
  for (const file of files) expect(built.sqlText(file)).toBe(codeOf(file));
});
