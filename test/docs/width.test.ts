// Lines of documents are as wide as those of code (biome.json). Cells of tables hold at most a few sentences: longer ones are lists.
import { expect, test } from 'vitest';
import biome from '../../biome.json' with { type: 'json' };
import { documents, proseOf, read } from './markdown.js';

/** Links and inline code are not cut. */
const UNCUT = /`[^`]*`|\[[^\]]*\]\([^)]*\)|\S+/g;
const ROW = 450;

/** Returns the lines of prose that are too wide although they could be cut, and the rows of tables that are far too wide. */
function tooWide(text: string): string[] {
  const { lineWidth } = biome.formatter;
  return proseOf(text)
    .split('\n')
    .filter((line) => {
      if (line.startsWith('|')) return line.length > ROW;
      const words = line.trim().match(UNCUT) ?? [];
      return line.length > lineWidth && words.length > 3 && !/^\s*(<|#)/.test(line);
    });
}

test.each(documents())('%s has no lines that are too wide', (document) => {
  expect(tooWide(read(document))).toEqual([]);
});

test('finds a line and a row that are too wide', () => {
  const long = 'word '.repeat(40);
  expect(tooWide(`short\n${long}\n| ${long.repeat(3)} |\n`)).toHaveLength(2);
});
