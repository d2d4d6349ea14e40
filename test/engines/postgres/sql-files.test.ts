// The SQL stands for itself: the comments of its sections name the numbers that they share with TypeScript, and nothing is left over.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import * as budget from '../../../src/store/budget.js';
import { EVENTS_KEPT, MAX_STEP_BYTES, MAX_STEPS, STALLED_REASON } from '../../../src/store/contract/index.js';
import { MARK } from '../../../src/store/marks.js';
import { ADVISORY } from '../../../src/store/postgres/driver/advisory.js';
import { RAISED } from '../../../src/store/postgres/driver/errors.js';
import { callOf, functionTexts, sqlOf, statementOf, tuning } from '../../../src/store/postgres/driver/sql.js';
import { STATE } from '../../../src/store/postgres/driver/tables.js';
import { sectionsOf, textsIn } from '../../../src/store/sections.js';

const ENGINE = new URL('../../../src/store/postgres/', import.meta.url);
const files = textsIn(fileURLToPath(new URL('sql/', ENGINE)));
const { operations: byName, parts } = sectionsOf(files);
const operations = [...byName.keys()].filter((name) => !name.startsWith('schema/'));
const sections = [...byName.keys(), ...Array.from(parts.keys(), (name) => `part ${name}`)];
const textOf = (section: string): string => byName.get(section) ?? parts.get(section.slice('part '.length)) ?? '';
const codeOf = (section: string): string => codeIn(textOf(section));
const codeIn = (text: string): string => text.replace(/^\s*--(?! include: ).*\n/gm, '');
const isFunction = (section: string): boolean => codeOf(section).startsWith('CREATE FUNCTION ');

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

/** Numbers that also mean other things, so a section may use them without a name. */
const MARKS: Record<string, string> = Object.fromEntries([
  ...Object.entries(MARK).map(([name, value]) => [`MARK.${name}`, String(value)]),
  ['MAX_STEPS', String(MAX_STEPS)],
]);

/** Returns the sections for which `wrong` finds something, with what it finds. */
const findings = (among: string[], wrong: (section: string) => unknown[]): [string, unknown[]][] =>
  among.map((section): [string, unknown[]] => [section, wrong(section)]).filter(([, found]) => found.length > 0);

describe('a section of SQL', () => {
  test('begins with a comment', () => {
    expect(sections.length).toBeGreaterThan(200);
    expect(sections.filter((section) => !/^-- [A-Z`_]/.test(textOf(section)))).toEqual([]);
    expect(Object.entries(files).filter(([, text]) => !/^-- [A-Z`_]/.test(text))).toEqual([]);
  });

  test('names the states whose numbers it uses, as TypeScript does', () => {
    const known = Object.entries(STATE).map(([name, number]) => `${number} ${name}`);
    const wrong = findings(sections, (file) => {
      const named = [...textOf(file).matchAll(/^ *-- States: (.*)\.$/gm)].flatMap(([, list = '']) => list.split(', '));
      const used = [...codeOf(file).matchAll(/\bstate(?: \+ 0)? (?:=|<>|<=) (-?\d)\b/g)].map(([, number]) => number);
      return [
        ...named.filter((state) => !known.includes(state)),
        ...used.filter((number) => !named.some((state) => state.startsWith(`${number} `))),
        ...named.filter((state) => !new RegExp(`(?<![\\w.])${state.split(' ')[0]}\\b`).test(codeOf(file))),
      ];
    });
    expect(wrong).toEqual([]);
    expect(sections.filter((section) => textOf(section).includes('-- States:')).length).toBeGreaterThan(20);
  });

  test('uses the numbers and texts that its header gives, and those that TypeScript has too are the same', () => {
    const wrong = findings(sections, (file) => {
      const code = codeOf(file);
      const given = [...textOf(file).matchAll(/^ *-- ([A-Z]{2}[\w.]*) = ([^:\n]+)/gm)].map(([, name = '', value = '']) => ({
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
    const wrong = findings(operations.filter(isFunction), (name) => {
      const header = textOf(name).replaceAll('\n--   ', ' ');
      const callers = /^-- Called by: (.*)\.$/m.exec(header)?.[1]?.split(', ') ?? ['nothing'];
      return [
        ...(codeOf(name).startsWith(`CREATE FUNCTION ${name}(`) ? [] : [name]),
        ...callers.filter((caller) => caller !== 'many' && !calls(caller, name)),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test('that creates no function is one statement, whose parameters TypeScript names', () => {
    const statements = operations.filter((file) => !isFunction(file));
    expect(statements.length).toBeGreaterThan(5);
    for (const name of statements) expect(statementOf(name)?.text).not.toMatch(/;|(?<!:):[a-z]/);
  });

  test('includes what exists', () => {
    for (const name of byName.keys()) expect(sqlOf(name)).not.toContain('-- include:');
  });
});

function calls(caller: string, name: string): boolean {
  // A TypeScript file names the function, or puts it behind the schema.
  if (caller.endsWith('.ts'))
    return new RegExp(`'${name}'|\\.${name}\\(|\\b${name}: \\[`).test(readFileSync(new URL(caller, ENGINE), 'utf8'));
  return byName.has(caller) && new RegExp(`\\b${name}\\(`).test(sqlOf(caller));
}

test('every part is included at least twice: one that is included once stands where it is used', () => {
  const all = Object.values(files).join('\n');
  const included = (part: string): number => all.split(`-- include: ${part}\n`).length - 1;
  const once = [...parts.keys()].filter((part) => included(part) < 2);
  // The store also reads it by itself.
  expect(once).toEqual([]);
});

test('claimed jobs are packed as listed ones are, without the columns that all of them have in common', () => {
  const columnsOf = (file: string): string[] => {
    const [, list = ''] = /json_build_array\(([\s\S]*?)\n *\)::text/.exec(codeOf(file)) ?? [];
    return list.split(/,\s*(?![^(]*\))/).map((item) => /(\w+)(?: END)?[)\]]/.exec(item)?.[1] ?? item.trim());
  };
  const listed = columnsOf('part listed').slice(0, 19);
  const common = ['state', 'delay', 'finished_on', 'processed_by', 'returnvalue'];
  const packed = listed.map((column) => (common.includes(column) ? 'NULL' : column));
  expect(listed).toContain('stacktrace');
  expect(columnsOf('part claimed-arrays').slice(0, 19)).toEqual(packed);
  expect(columnsOf('part take').slice(0, 19)).toEqual(packed);
  const selected = [...codeOf('part claimed-columns').matchAll(/jobs\.(\w+)/g)].map(([, column]) => column);
  expect(selected).toEqual([...packed.filter((column) => column !== 'NULL'), 'marks', 'extras']);
});

test('the functions of the schema are those of the sections', () => {
  const created = Object.entries(functionTexts()).flatMap(([key, text]) =>
    [...text.matchAll(/^CREATE FUNCTION (\w+)/gm)].map(([, name]) => (name === key ? key : `${name} as ${key}`)),
  );
  expect(created.sort()).toEqual(operations.filter(isFunction).sort());
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

test('the build embeds every line of code of every SQL file, and no comment but those that begin sections and name parts', () => {
  const built = createRequire(import.meta.url)('../../../dist/store/postgres/driver/sql-texts.js') as { texts: typeof files };
  const kept = (text: string): string => text.replace(/^[ \t]*--(?! (?:name|part|include): ).*\n/gm, '');
  expect(built.texts).toEqual(Object.fromEntries(Object.entries(files).map(([file, text]) => [file, kept(text)])));
});
