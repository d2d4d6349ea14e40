// Finds links between documents that lead nowhere: the file is missing, or the heading is.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { proseOf } from './markdown.js';

/** The relative links of a document in `folder` whose file, or whose heading in that file, is not in `folder`. */
export function brokenLinks(folder: string, document: string): string[] {
  const text = proseOf(readFileSync(join(folder, document), 'utf8')).replace(/`[^`\n]*`/g, '``');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)].map(
    (match) => match[1] ?? '',
  );
  return targets.filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(folder, document, target));
}

function leadsSomewhere(folder: string, document: string, target: string): boolean {
  const [path = '', heading] = target.split('#');
  const file = path === '' ? document : normalize(join(dirname(document), decodeURIComponent(path)));
  if (file.startsWith('..') || !existsSync(join(folder, file))) return false;
  return heading === undefined || !file.endsWith('.md') || anchorsOf(join(folder, file)).includes(heading);
}

/** As GitHub makes them. */
function anchorsOf(path: string): string[] {
  const headings = [...proseOf(readFileSync(path, 'utf8')).matchAll(/^#{1,6} (.+)$/gm)].map((match) => match[1] ?? '');
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
