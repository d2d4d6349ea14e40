// Links between the documents lead somewhere: the file exists, and so does the heading.
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { documents, proseOf, read, root } from './markdown.js';

test.each(documents())('the links of %s lead somewhere', (document) => {
  const prose = proseOf(read(document)).replace(/`[^`\n]*`/g, '``');
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g), ...prose.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)].map(
    (match) => match[1] ?? '',
  );
  expect(targets.filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(document, target))).toEqual([]);
});

function leadsSomewhere(document: string, target: string): boolean {
  const [path = '', heading] = target.split('#');
  const file = path === '' ? document : normalize(join(dirname(document), decodeURIComponent(path)));
  if (file.startsWith('..') || !existsSync(join(root, file))) return false;
  return heading === undefined || !file.endsWith('.md') || anchorsOf(file).includes(heading);
}

/** As GitHub makes them. */
function anchorsOf(document: string): string[] {
  const headings = [...proseOf(read(document)).matchAll(/^#{1,6} (.+)$/gm)].map((match) => match[1] ?? '');
  const seen = new Map<string, number>();
  return headings.map((heading) => {
    const words = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim();
    const anchor = words.replace(/\s/g, '-');
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}
