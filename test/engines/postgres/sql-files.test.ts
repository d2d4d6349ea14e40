// The SQL files stand for themselves: their headers name the numbers that they share with TypeScript, and nothing in them is left over.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import * as budget from '../../../src/store/budget.js';
import { EVENTS_KEPT, MAX_STEP_BYTES, MAX_STEPS, STALLED_REASON } from '../../../src/store/contract/index.js';
import { MARK } from '../../../src/store/marks.js';
import { ADVISORY } from '../../../src/store/postgres/driver/advisory.js';
import { RAISED } from '../../../src/store/postgres/driver/errors.js';
import { callOf, functionTexts, sqlOf, statementOf, tuning } from '../../../src/store/postgres/driver/sql.js';
import { STATE } from '../../../src/store/postgres/driver/tables.js';

const ENGINE = new URL('../../../src/store/postgres/', import.meta.url);
const FOLDER = new URL('sql/', ENGINE);
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.replaceAll('\\', '/'));
const operations = files.filter((file) => !file.includes('/'));
const textOf = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');
const codeOf = (file: string): string => textOf(file).replace(/^\s*--(?! include: ).*\n/gm, '');
const nameOf = (file: string): string => file.replace('.sql', '').replaceAll('-', '_');
const isFunction = (file: string): boolean => codeOf(file).startsWith('CREATE FUNCTION ');

/** The numbers and texts that SQL and TypeScript share, by the names in the headers. */
const SHARED: Record<string, string> = Object.fromEntries(
  [
    ...Object.entries(budget).filter(([, value]) => typeof value === 'number'),
    ['EVENTS_KEPT', EVENTS_KEPT],
    ['MAX_STEP_BYTES', MAX_STEP_BYTES],
    ['STALLED_REASON', STALLED_REASON],
    ['MARK.next', MARK.next],
    ['MARK.doomed', MARK.doomed],
    ['MARK.letter', MARK.letter],
    ...Object.entries(ADVISORY).map(([name, value]) => [`ADVISORY.${name}`, value]),
    ...Object.entries(RAISED).map(([name, value]) => [`RAISED.${name}`, value]),
  ].map(([name, value]) => [name, String(value)]),
);

/** Numbers that also mean other things, so a file may use them without a name. */
const MARKS: Record<string, string> = Object.fromEntries([
  ...Object.entries(MARK).map(([name, value]) => [`MARK.${name}`, String(value)]),
  ['MAX_STEPS', String(MAX_STEPS)],
]);

/** Returns the files for which `wrong` finds something, with what it finds. */
const findings = (among: string[], wrong: (file: string) => unknown[]): [string, unknown[]][] =>
  among.map((file): [string, unknown[]] => [file, wrong(file)]).filter(([, found]) => found.length > 0);

describe('an SQL file', () => {
  test('begins with a comment', () => {
    expect(files.length).toBeGreaterThan(80);
    expect(files.filter((file) => !/^-- [A-Z`_]/.test(textOf(file)))).toEqual([]);
  });

  test('names the states whose numbers it uses, as TypeScript does', () => {
    const known = Object.entries(STATE).map(([name, number]) => `${number} ${name}`);
    const wrong = findings(files, (file) => {
      const named = /^-- States: (.*)\.$/m.exec(textOf(file))?.[1]?.split(', ') ?? [];
      const used = [...codeOf(file).matchAll(/\bstate(?: \+ 0)? (?:=|<>|<=) (-?\d)\b/g)].map(([, number]) => number);
      return [
        ...named.filter((state) => !known.includes(state)),
        ...used.filter((number) => !named.some((state) => state.startsWith(`${number} `))),
        ...named.filter((state) => !new RegExp(`(?<![\\w.])${state.split(' ')[0]}\\b`).test(codeOf(file))),
      ];
    });
    expect(wrong).toEqual([]);
    expect(files.filter((file) => textOf(file).includes('-- States:')).length).toBeGreaterThan(20);
  });

  test('uses the numbers and texts that its header gives, and those that TypeScript has too are the same', () => {
    const wrong = findings(files, (file) => {
      const code = codeOf(file);
      const given = [...textOf(file).matchAll(/^-- ([A-Z]{2}[\w.]*) = ([^:\n]+)/gm)].map(([, name = '', value = '']) => ({
        name,
        value,
      }));
      return [
        ...given.filter(({ value }) => !code.includes(value)),
        ...given.filter(({ name, value }) => (SHARED[name] ?? MARKS[name] ?? value) !== value),
        ...Object.values(SHARED).filter(
          // The tables have numbers of their own.
          (value) =>
            !file.startsWith('schema/') && new RegExp(`\\b${value}\\b`).test(code) && !given.some((one) => one.value === value),
        ),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test('that creates a function has its name, and is called where it says', () => {
    const wrong = findings(operations.filter(isFunction), (file) => {
      const name = nameOf(file);
      const header = textOf(file).replaceAll('\n--   ', ' ');
      const callers = /^-- Called by: (.*)\.$/m.exec(header)?.[1]?.split(', ') ?? ['nothing'];
      return [
        ...(codeOf(file).startsWith(`CREATE FUNCTION ${name}(`) ? [] : [name]),
        ...callers.filter((caller) => !['many', 'older versions'].includes(caller) && !calls(caller, name)),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test('that creates a function has at most 60 lines of it', () => {
    const linesOf = (file: string): number => {
      const lines = textOf(file).split('\n');
      return lines.lastIndexOf('$body$;') - lines.findIndex((line) => line.startsWith('CREATE FUNCTION ')) + 1;
    };
    expect(operations.filter(isFunction).filter((file) => linesOf(file) > 60 || linesOf(file) < 3)).toEqual([]);
  });

  test('that creates no function is one statement, whose parameters TypeScript names', () => {
    const statements = operations.filter((file) => !isFunction(file));
    expect(statements.length).toBeGreaterThan(5);
    for (const file of statements) expect(statementOf(nameOf(file))?.text).not.toMatch(/;|(?<!:):[a-z]/);
  });

  test('includes what exists', () => {
    for (const file of files) expect(sqlOf(file)).not.toContain('-- include:');
  });
});

function calls(caller: string, name: string): boolean {
  // A TypeScript file names the function, or puts it behind the schema.
  if (caller.endsWith('.ts'))
    return new RegExp(`'${name}'|\\.${name}\\(|\\b${name}: \\[`).test(readFileSync(new URL(caller, ENGINE), 'utf8'));
  return operations.includes(caller) && new RegExp(`\\b${name}\\(`).test(sqlOf(caller));
}

test('every shared part is included somewhere', () => {
  const all = files.map(textOf).join('\n');
  const unused = files
    .filter((file) => file.startsWith('shared/'))
    .filter((file) => !all.includes(`-- include: ${file.slice('shared/'.length, -'.sql'.length)}\n`));
  expect(unused).toEqual([]);
});

test('claimed jobs are packed as listed ones are, without the columns that all of them have in common', () => {
  const columnsOf = (file: string): string[] => {
    const [, list = ''] = /json_build_array\(([\s\S]*?)\n\)::text/.exec(codeOf(file)) ?? [];
    return list.split(/,\s*(?![^(]*\))/).map((item) => /(\w+)(?: END)?[)\]]/.exec(item)?.[1] ?? item.trim());
  };
  const listed = columnsOf('shared/listed.sql').slice(0, 19);
  const common = ['state', 'delay', 'finished_on', 'processed_by', 'returnvalue'];
  const packed = listed.map((column) => (common.includes(column) ? 'NULL' : column));
  expect(listed).toContain('stacktrace');
  expect(columnsOf('shared/claimed-arrays.sql').slice(0, 19)).toEqual(packed);
  expect(columnsOf('shared/claimed-one.sql').slice(0, 19)).toEqual(packed);
  const selected = [...codeOf('shared/claimed-columns.sql').matchAll(/jobs\.(\w+)/g)].map(([, column]) => column);
  expect(selected).toEqual([...packed.filter((column) => column !== 'NULL'), 'marks', 'extras']);
});

test('the functions of the schema are those of the files', () => {
  const created = Object.entries(functionTexts()).flatMap(([key, text]) =>
    [...text.matchAll(/^CREATE FUNCTION (\w+)/gm)].map(([, name]) => (name === key ? key : `${name} as ${key}`)),
  );
  expect(created.sort()).toEqual(operations.filter(isFunction).map(nameOf).sort());
});

test('a parameter may stand several times, and a cast is none', () => {
  const { text, parameters } = statementOf('add_plain') ?? { text: '', parameters: [] };
  expect(parameters).toEqual(['seq', 'queue', 'caller', 'timestamp', 'name', 'opts', 'data', 'channel', 'payload']);
  expect(text).toContain('c.seq < $1');
  expect(text).toContain('::regclass');
});

test('a function is called with the names of its parameters', () => {
  expect(callOf('s.settle', ['name', 'keepCounts'])).toEqual({
    text: 'SELECT s.settle(_name => $1, _keep_counts => $2) AS reply',
    parameters: ['name', 'keepCounts'],
  });
});

test('a connection gets the settings that verbs have', () => {
  expect(tuning()).toContain("set_config('jit', 'off', false) || set_config('lock_timeout', '8s', false)");
});

test('the build embeds every line of code of every SQL file, and no comment but the includes', () => {
  const built = createRequire(import.meta.url)('../../../dist/store/postgres/driver/sql-texts.js') as {
    sqlText(file: string): string;
    sqlFiles(): string[];
  };
  expect(built.sqlFiles().sort()).toEqual([...operations].sort());
  for (const file of files) expect(built.sqlText(file)).toBe(codeOf(file));
});
