// The Lua of the Redis store: each script lists its arguments, no function is long, and every part has a use.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sectionsOf, textsIn } from '../../../src/store/sections.js';

const files = textsIn(fileURLToPath(new URL('../../../src/store/redis/lua/', import.meta.url)));
const { operations, parts } = sectionsOf(files);
const MOST_LINES = 60;

/**
 * The functions of a text that have more lines of code, without those of the functions in them. A function ends with the first `end` that
 * stands as far left as its beginning.
 */
function longFunctions(text: string, most: number): string[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('--'));
  const found = lines.flatMap((line, first) => {
    const indent = /^( *)(?:local )?function /.exec(line)?.[1];
    if (indent === undefined || line.endsWith(' end')) return [];
    const length = lines.slice(first).findIndex((other) => other.startsWith(`${indent}end`)) + 1;
    return [{ line, first, length }];
  });
  const inside = ({ first, length }: (typeof found)[number]): number => {
    const inner = found.filter((other) => other.first > first && other.first < first + length);
    const outermost = inner.filter(
      (one) => !inner.some((other) => other.first < one.first && one.first < other.first + other.length),
    );
    return outermost.reduce((sum, other) => sum + other.length, 0);
  };
  return found.filter((one) => one.length - inside(one) > most).map(({ line }) => line);
}

test('each Lua script lists its KEYS and ARGV', () => {
  expect(operations.size).toBeGreaterThan(35);
  const silent = [...operations].filter(([, text]) => !/^-- KEYS: /m.test(text) || !/^-- ARGV: /m.test(text));
  expect(silent.map(([name]) => name)).toEqual([]);
});

test('no Lua function has more than 60 lines', () => {
  expect(Object.values(files).flatMap((text) => longFunctions(text, MOST_LINES))).toEqual([]);
  const long = `local function short()\nend\n\nfunction long()\n${'  step()\n'.repeat(MOST_LINES)}end`;
  expect(longFunctions(long, MOST_LINES)).toEqual(['function long()']);
  const within = `function outer()\n${'  step()\n'.repeat(MOST_LINES - 10)}  function inner()\n${'    step()\n'.repeat(10)}  end\nend`;
  expect(longFunctions(within, MOST_LINES)).toEqual([]);
});

test('each part of the Lua scripts is used by a script', () => {
  const used = [...operations.values()].flatMap((text) => /^-- use: (.+)$/m.exec(text)?.[1]?.split(' ') ?? []);
  expect([...parts.keys()].filter((part) => !used.includes(part))).toEqual([]);
  expect(used.filter((part) => !parts.has(part))).toEqual([]);
});
