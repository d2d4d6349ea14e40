// Every line of docs/contributing/acceptance.md has a test with its id, and every id in a test or a conformance title has a line.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { read, root } from './markdown.js';

const ID = /\bS\d+-\d+\b/g;
const FOLDERS = ['test/acceptance', 'test/faults', 'test/unit', 'test/stores', 'test/examples', 'src/testing/conformance'];

const lines = [...read('docs/contributing/acceptance.md').matchAll(/^- \*\*(S\d+-\d+)\*\* ./gm)].map((match) => match[1] ?? '');
const tested = new Set(FOLDERS.flatMap((folder) => sourcesIn(folder)).flatMap((source) => source.match(ID) ?? []));

function sourcesIn(folder: string): string[] {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return files.map((file) => readFileSync(join(root, folder, file), 'utf8'));
}

test('the acceptance list has each id once', () => {
  expect(lines.length).toBeGreaterThan(60);
  expect(lines).toEqual([...new Set(lines)]);
});

test('every line of the acceptance list has a test with its id', () => {
  expect(lines.filter((id) => !tested.has(id))).toEqual([]);
});

test('every id in a test has a line in the acceptance list', () => {
  expect([...tested].filter((id) => !lines.includes(id))).toEqual([]);
});
