// Links between the documents lead somewhere, and every page of docs/ can be found from the README or from CONTRIBUTING.
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { brokenLinks } from './links.js';
import { documents, proseOf, read, root } from './markdown.js';

test.each(documents())('the links of %s lead somewhere', (document) => {
  expect(brokenLinks(root, document)).toEqual([]);
});

test.each([
  ['README.md', /^docs\/[^/]+\.md$/],
  ['CONTRIBUTING.md', /^docs\/contributing\/[^/]+\.md$/],
])('%s links every page that matches %s', (list, pages) => {
  const targets = [...proseOf(read(list)).matchAll(/\]\(([^)#\s]+)/g)].map((match) =>
    normalize(join(dirname(list), match[1] ?? '')),
  );
  expect(documents().filter((document) => pages.test(document) && !targets.includes(document))).toEqual([]);
});
