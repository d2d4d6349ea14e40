// The frames that docs/contributing/life-of-a-job.md lists exist, in the files that it names.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, read, root } from './markdown.js';

const PAGE = 'docs/contributing/life-of-a-job.md';

interface Frame {
  name: string;
  file: string;
}

/** Returns the frames of a list. A line without a file has that of the line before it. */
function framesOf(list: string): Frame[] {
  let file = '';
  return list
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [name = '', named] = line.trim().split(/\s+/);
      file = named ?? file;
      return { name: name.split('.').at(-1) ?? '', file };
    });
}

/** True if the file has a method, a function or an operation of this name. */
function exists({ name, file }: Frame): boolean {
  return new RegExp(`(^|[ .])${name}(<[^>]*>)?(\\(|: | = )`, 'm').test(readFileSync(join(root, file), 'utf8'));
}

const lists = blocksOf(read(PAGE)).filter(({ language }) => language === 'text');

test('the lists of frames name methods that exist', () => {
  expect(lists.length).toBeGreaterThan(3);
  expect(lists.flatMap(({ code }) => framesOf(code)).filter((frame) => !exists(frame))).toEqual([]);
});

test('a frame that does not exist is found', () => {
  expect(exists({ name: '#addNone', file: 'src/queue/queue.ts' })).toBe(false);
});
