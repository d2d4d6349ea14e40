// docs/errors.md and the code agree on the error codes.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/errors.js';
import { read, root } from './markdown.js';

const codes = Object.keys(ERROR_CODES);
const documented = existsSync(join(root, 'docs/errors.md'))
  ? [...read('docs/errors.md').matchAll(/^### (.+)$/gm)].map((match) => match[1])
  : [];
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && path !== 'errors.ts')
  .map((path) => ({ path, text: readFileSync(join(root, 'src', path), 'utf8') }));

test('docs/errors.md has a section for every code, once', () => {
  expect(codes.filter((code) => documented.filter((heading) => heading === code).length !== 1)).toEqual([]);
});

test('src/ uses every code', () => {
  expect(codes.filter((code) => !sources.some(({ text }) => text.includes(`'${code}'`)))).toEqual([]);
});

test('docs/errors.md explains no code that does not exist', () => {
  expect(documented.filter((heading) => heading === undefined || !codes.includes(heading))).toEqual([]);
});

test('src/ makes errors with known codes only', () => {
  const made = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/new HoldfastError\(\s*'([^']*)'/g)].map((match) => ({ path, code: match[1] ?? '' })),
  );
  expect(made.filter(({ code }) => !codes.includes(code))).toEqual([]);
});
