// Titles of tests can be read alone, together with their describe block: CONTRIBUTING.md, "How tests are written".
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './markdown.js';

const FOLDERS = ['test/unit', 'test/stores', 'test/tools', 'test/faults', 'test/acceptance', 'test/engines', 'test/cost'];
const TITLE = /(?:^|\n)\s*(?:describe|test|it)\b[^\n'`"]*?\(\s*(['`"])((?:(?!\1).)*)\1\s*,|\]\)\(\s*(['`])((?:(?!\3).)*)\3\s*,/g;
/** An id of the acceptance list, and the mark of a control. */
const MARKS = /^((S\d+-\d+,? )+|\(N\) )*/;
/** A title that begins like this continues another one, or names no subject. */
const BEGINNING = /^(and|but|nor|or|at all|in time|who|those|what|its?|they|also|not)\b/i;
const NO_ACTOR = /\b(nobody|somebody|whoever|everybody|anybody|anyone|everyone|is told|are told|tells|uncharged)\b/;

function titlesIn(source: string): string[] {
  return [...source.matchAll(TITLE)].map((match) => match[2] ?? match[4] ?? '');
}

function isUnclear(title: string): boolean {
  const words = title.replace(MARKS, '');
  return BEGINNING.test(words) || NO_ACTOR.test(words);
}

test.each(FOLDERS)('every title in %s can be read alone', (folder) => {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.test.ts'),
  );
  const titles = files.flatMap((file) =>
    titlesIn(readFileSync(join(root, folder, file), 'utf8')).map((title) => `${file}: ${title}`),
  );
  expect(titles.length).toBeGreaterThan(files.length);
  expect(titles.filter((line) => isUnclear(line.slice(line.indexOf(': ') + 2)))).toEqual([]);
});

test('a title that continues another one, or names no actor, is found', () => {
  const source = `
describe('a store', () => {
  test('and then refuses', () => undefined);
  test.each([1, 2])('S0-1 (N) nobody is left (%i)', () => undefined);
  it('replies in time', () => undefined);
`;
  expect(titlesIn(source).filter(isUnclear)).toEqual(['and then refuses', 'S0-1 (N) nobody is left (%i)']);
});
