// The Lua files of the Redis store: each script lists its arguments, no function is long, and every part has a use.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const FOLDER = new URL('../../../src/store/redis/lua/', import.meta.url);
const MOST_LINES = 60;
const textOf = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
const scripts = files.filter((file) => !file.startsWith('shared'));

/** The functions of a text that have more lines. A function ends with the first `end` that stands as far left as its beginning. */
function longFunctions(text: string, most: number): string[] {
  const lines = text.split('\n');
  return lines.filter((line, first) => {
    const indent = /^( *)(?:local )?function /.exec(line)?.[1];
    if (indent === undefined || line.endsWith(' end')) return false;
    const length = lines.slice(first).findIndex((other) => other.startsWith(`${indent}end`));
    return length + 1 > most;
  });
}

test('each Lua script lists its KEYS and ARGV', () => {
  expect(scripts.length).toBeGreaterThan(35);
  expect(scripts.filter((file) => !/^-- KEYS: /m.test(textOf(file)) || !/^-- ARGV: /m.test(textOf(file)))).toEqual([]);
});

test('no Lua function has more than 60 lines', () => {
  expect(files.flatMap((file) => longFunctions(textOf(file), MOST_LINES))).toEqual([]);
  const long = `local function short()\nend\n\nfunction long()\n${'  step()\n'.repeat(MOST_LINES)}end`;
  expect(longFunctions(long, MOST_LINES)).toEqual(['function long()']);
});

test('each shared part of the Lua scripts is used by a script or by another part', () => {
  const used = files.flatMap((file) => {
    const text = textOf(file);
    const lists = [/^-- use: (.+)$/m.exec(text)?.[1], ...Array.from(text.matchAll(/\$include\{([^}]+)\}/g), ([, list]) => list)];
    return lists.flatMap((list) => list?.split(' ') ?? []);
  });
  const parts = files.filter((file) => file.startsWith('shared')).map((file) => file.slice('shared/'.length, -'.lua'.length));
  expect(parts.filter((part) => !used.includes(part))).toEqual([]);
  expect(used.filter((part) => !parts.includes(part))).toEqual([]);
});
