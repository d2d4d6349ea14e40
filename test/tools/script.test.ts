// `npm run script`: prints what a server gets for an operation.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sqlOf as postgres } from '../../src/store/postgres/driver/sql.js';
import { script as lua } from '../../src/store/redis/driver/scripts.js';
import { sectionsOf } from '../../src/store/sections.js';
import { sqlOf as sqlite } from '../../src/store/sqlite/driver/sql.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

function run(...args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['scripts/script.mjs', ...args],
      { cwd: root, maxBuffer: 1e7 },
      (_, output, errors) => resolve({ code: child.exitCode, output, errors }),
    );
  });
}

/** The code of a text, line by line. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s*--/.test(line))
    .map((line) => line.trimEnd());

test.each([
  ['postgres', 'settle_plain', () => postgres('settle_plain')],
  ['postgres', 'settle-plain', () => postgres('settle_plain')],
  ['sqlite', 'complete', () => sqlite('complete')],
  ['redis', 'settle', () => lua('settle').text],
])('prints what %s gets for %s', async (engine, operation, text) => {
  const { code, output } = await run(engine, operation);
  expect(code).toBe(0);
  expect(linesOf(output)).toEqual(linesOf(text()));
  expect(output).not.toContain('-- include:');
});

test('prints the numbers of the parameters of a statement, and the arguments of a script', async () => {
  expect((await run('postgres', 'add_plain')).output).toMatch(/^-- \$1 seq, \$2 queue, \$3 caller,/);
  expect((await run('redis', 'extend')).output).toMatch(/^-- KEYS: tag.*\n-- ARGV: for each lock/);
});

test('names the nearest engine or operation, and lists the operations of an engine', async () => {
  expect(await run('postgre', 'settle')).toMatchObject({
    code: 1,
    output: '',
    errors: 'There is no engine postgre: did you mean postgres?\n',
  });
  expect((await run('redis', 'setle')).errors).toBe('There is no operation setle: did you mean settle?\n');
  expect((await run('redis', 'nothing-like-it')).errors).toContain('Without a name, this command lists them.');
  expect((await run('sqlite')).errors).toContain('The operations of sqlite: add-log, ');
  expect((await run()).errors).toContain('npm run script -- <engine> <operation>');
});

test('two sections of a name are refused', () => {
  const one = '-- A file.\n\n-- name: a\n-- Does it.\nSELECT 1\n\n-- part: a\n-- Half of it.\n1\n';
  expect(sectionsOf({ 'one.sql': one })).toEqual({
    operations: new Map([['a', '-- Does it.\nSELECT 1\n']]),
    parts: new Map([['a', '-- Half of it.\n1\n']]),
  });
  expect(() => sectionsOf({ 'one.sql': one, 'two.sql': one })).toThrow('two.sql has a second section name: a');
});
