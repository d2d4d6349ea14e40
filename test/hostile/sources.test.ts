// Nothing that comes from outside gets into the text of a statement or a script: SQL is put together when a module is loaded or a store
// is made, of constants alone; what runs later only passes values. Lua, the SQL of SQLite and most of that of PostgreSQL are read from files as they are.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'vitest/node';
import { describe, expect, test } from 'vitest';
import { sectionsOf, textsIn } from '../../src/store/sections.js';

const STORES = new URL('../../src/store/', import.meta.url);
const SQL = /\b(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WHERE|FROM|PRAGMA|LISTEN|NOTIFY|SET|ORDER BY|VALUES|RETURN)\b/;

/** Where a statement is put together later after all: of what, and why that is no value of a user's. */
const KNOWN: Record<string, string> = {
  'postgres/driver/listener.ts this.#options.channel': 'hexadecimal digits',
  'postgres/driver/schema.ts quoteName(schema)': 'an option of the store, quoted as an identifier',
  'postgres/driver/schema.ts name': 'the schema, quoted as an identifier',
  'postgres/driver/schema.ts place, encoding': 'a message',
  'postgres/driver/schema.ts place, isolation': 'a message',
  'postgres/driver/schema.ts database, user': 'a message',
  'postgres/driver/schema.ts quoteName(schema), quoteName(schema), user': 'a message',
  'postgres/driver/warnings.ts this.#place, name, RISKS[name], name': 'a message',
};
/** The first is called when a store is opened, with numbers of versions; the second with the names of a function and its parameters. */
const OPENING = ['postgres/connection.ts migrate', 'postgres/driver/server.ts callOf'];
const RUNNERS = ['call', 'short', 'ask', 'askShort', 'rows'];
const COMMANDS = ['command', 'cjson.decode', "ascending and 'ZRANGE' or 'ZREVRANGE'"];

interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

interface Source {
  file: string;
  text: string;
  body: Node[];
}

const sources: Source[] = ['sqlite', 'postgres'].flatMap((engine) =>
  readdirSync(new URL(`${engine}/`, STORES), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const text = readFileSync(new URL(`${engine}/${name}`, STORES), 'utf8');
      return { file: `${engine}/${name}`, text, body: (parseAst(text, { lang: 'ts' }) as unknown as { body: Node[] }).body };
    }),
);

/** Calls back for every node, and whether it runs when a verb is called: in an async function, or in a method. */
function walk(node: unknown, runs: boolean, visit: (node: Node, runs: boolean) => void): void {
  if (Array.isArray(node)) return node.forEach((one) => walk(one, runs, visit));
  if (typeof node !== 'object' || node === null) return;
  const one = node as Node;
  if (typeof one.type === 'string') visit(one, runs);
  const later = runs || one['async'] === true || (one.type === 'MethodDefinition' && one['kind'] !== 'constructor');
  for (const [field, inner] of Object.entries(one)) if (field !== 'parent') walk(inner, later, visit);
}

function isBuiltSql({ type, quasis, expressions }: Node): boolean {
  if (type !== 'TemplateLiteral' || (expressions as Node[]).length === 0) return false;
  return (quasis as { value: { raw: string } }[]).some(({ value }) => SQL.test(value.raw));
}

/** Functions of a module that answer SQL with their arguments in it. */
function buildersOf({ body }: Source): string[] {
  return body.flatMap((statement) => {
    const declared = (statement['declaration'] ?? statement) as Node;
    const functions: [string, Node][] =
      declared.type === 'FunctionDeclaration'
        ? [[(declared['id'] as unknown as { name: string }).name, declared]]
        : ((declared['declarations'] ?? []) as Node[])
            .filter(({ init }) => (init as Node | null)?.type === 'ArrowFunctionExpression')
            .map((one) => [(one['id'] as unknown as { name: string }).name, one['init'] as Node]);
    return functions
      .filter(([, one]) => one['async'] !== true && (one['params'] as Node[]).length > 0 && builds(one))
      .map(([name]) => name);
  });
}

function builds(node: Node): boolean {
  let found = false;
  walk(node, false, (one) => {
    found ||= isBuiltSql(one);
  });
  return found;
}

describe('SQL', () => {
  test('is not put together in what a verb runs', () => {
    const found = sources.flatMap(({ file, text, body }) => {
      const built: string[] = [];
      walk(body, false, (node, runs) => {
        const parts = () => (node['expressions'] as Node[]).map(({ start, end }) => text.slice(start, end)).join(', ');
        if (runs && isBuiltSql(node)) built.push(`${file} ${parts()}`);
      });
      return built;
    });
    expect(found.filter((place) => KNOWN[place] === undefined)).toEqual([]);
    expect(
      Object.keys(KNOWN).filter((place) => !found.includes(place)),
      'known, and gone',
    ).toEqual([]);
  });

  test('is put together by functions that no verb calls', () => {
    const builders = new Set(sources.flatMap(buildersOf));
    expect(builders.size).toBeGreaterThan(0);
    const called = sources.flatMap(({ file, body }) => {
      const names: string[] = [];
      walk(body, false, (node, runs) => {
        const callee = node.type === 'CallExpression' ? (node['callee'] as unknown as { name?: string }).name : undefined;
        if (runs && callee !== undefined && builders.has(callee)) names.push(`${file} ${callee}`);
      });
      return names;
    });
    expect(called.filter((one) => !OPENING.includes(one))).toEqual([]);
  });

  test('of a verb is named by a text of ours', () => {
    const names = sources.flatMap(({ file, text, body }) => {
      const called: string[] = [];
      walk(body, false, (node) => {
        if (node.type !== 'CallExpression') return;
        const { object, property } = node['callee'] as { object?: { name?: string }; property?: { name?: string } };
        if (object?.name !== 'server' || !RUNNERS.includes(property?.name ?? '')) return;
        const [first] = node['arguments'] as Node[];
        if (first?.type !== 'Literal') called.push(`${file} ${text.slice(node.start, node.end)}`);
        else called.push('literal');
      });
      return called;
    });
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => name !== 'literal')).toEqual([]);
  });

  test('would be found where it is put together of an argument', () => {
    const text = 'export async function find(db, id) { return db.query(`SELECT * FROM jobs WHERE id = ${id}`); }';
    let found = 0;
    walk((parseAst(text, { lang: 'ts' }) as unknown as { body: Node[] }).body, false, (node, runs) => {
      if (runs && isBuiltSql(node)) found += 1;
    });
    expect(found).toBe(1);
  });

  test('of functions in PostgreSQL runs no text but with numbers of its own in it', () => {
    const folder = new URL('postgres/sql/', STORES);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.sql'))
      .map((name) => ({ file: `postgres/sql/${name}`, text: readFileSync(new URL(name, folder), 'utf8') }));
    expect(files.length).toBeGreaterThan(20);
    const dynamic = [...sources, ...files].flatMap(({ file, text }) =>
      [...text.matchAll(/EXECUTE (?!FUNCTION)(.*)/g)].map(([, what]) => `${file} ${what}`),
    );
    expect(dynamic.toSorted()).toEqual([
      'postgres/sql/change.sql (',
      "postgres/sql/jobs.sql 'SELECT ARRAY(SELECT at FROM (' || _found || ' LIMIT $3 OFFSET $2) j)' INTO _rows USING _queue, _from, _count, _group;",
      "postgres/sql/queues.sql format('CREATE SEQUENCE ids_%s', _queue);",
      "postgres/sql/queues.sql format('GRANT ALL ON SEQUENCE ids_%s TO PUBLIC', _queue);",
      "postgres/sql/schema.sql 'DROP FUNCTION ' || _old || ' CASCADE';",
      "postgres/sql/schema.sql 'DROP FUNCTION ' || _old || ' CASCADE'; END LOOP;",
      'postgres/sql/schema.sql _function.text; END IF;',
      "postgres/sql/schema.sql regexp_replace(_function.text, '^CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION', 'n');",
    ]);
  });

  // The argument `_list` decides between texts of the section. It is never a part of the text that runs.
  const { operations } = sectionsOf(textsIn(fileURLToPath(new URL('postgres/sql/', STORES))));
  test.each([
    ['listed_rows', ['_found', '_order', '_way', 'state']],
    ['select_listed', ['part']],
  ])('that %s puts together consists of texts of its own', (name, parts) => {
    const text = operations.get(name) ?? '';
    const code = text.replace(/--.*$/gm, '').replace(/'[^']*'/g, "''");
    const joined = [...code.matchAll(/\b([a-z_]+)\s*\|\||\|\|\s*([a-z_]+)\b(?!\()/g)].map(([, left, right]) => left ?? right);
    expect(new Set(joined)).toEqual(new Set(parts));
  });
});

describe('Lua', () => {
  const folder = new URL('redis/lua/', STORES);
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lua'));

  test.each(scripts)('%s runs no text that it has made', (name) => {
    const code = readFileSync(new URL(name, folder), 'utf8').replace(/--.*$/gm, '');
    expect(code).not.toMatch(/\b(loadstring|load|dofile|require|setfenv|getfenv|rawset)\s*\(|'EVAL|"EVAL/);
    // A command is named by a text of the script, or by the argument of one of its own functions.
    const named = [...code.matchAll(/(?<![\w.])(?:redis\.)?p?call\((?!'[A-Z]+'[,)])([^,)]*)/g)].map(([, first]) => first);
    expect(named.filter((first) => !COMMANDS.includes(first ?? ''))).toEqual([]);
  });

  test('that is sent consists of the texts of the files', () => {
    const text = withoutComments(readFileSync(new URL('redis/driver/scripts.ts', STORES), 'utf8'));
    expect([...text.matchAll(/`[^`]*`/g)].map(([template]) => template)).toEqual([
      // Before the text of a file, one command for a Redis that is full.
      "`redis.call('UNLINK', KEYS[1] .. ':forced')\\n${script(name).text}`",
    ]);
    const sent = readdirSync(new URL('redis/', STORES), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && /\beval\b/i.test(readFileSync(new URL(`redis/${name}`, STORES), 'utf8')),
    );
    expect(sent.length).toBeLessThan(4);
    // Placeholders are replaced by the texts of one file.
    const lists = withoutComments(readFileSync(new URL('redis/driver/lua-lists.ts', STORES), 'utf8'));
    expect(lists).not.toMatch(/\b(import|process)\b|`/);
  });
});

function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}
