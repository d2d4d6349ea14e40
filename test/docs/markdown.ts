// Reads the documents of the repository: README.md, CONTRIBUTING.md, CHANGELOG.md, SECURITY.md and everything in docs/.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface Block {
  language: string;
  /** What follows the language: `run`, `continue`. */
  words: string[];
  /** The reason in `no-run=<reason>`, which goes on to the end of the line. */
  noRun: string | undefined;
  /** Line of its first line of code, counted from 1. */
  line: number;
  code: string;
}

export function documents(): string[] {
  const docs = existsSync(join(root, 'docs')) ? readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }) : [];
  const pages = docs.filter((path) => path.endsWith('.md')).map((path) => join('docs', path));
  const top = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];
  return [...top.filter((path) => existsSync(join(root, path))), ...pages.sort()];
}

export function read(document: string): string {
  return readFileSync(join(root, document), 'utf8');
}

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open: { fence: string; block: Block } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    if (open !== undefined) {
      if (line.trim() === open.fence) open = undefined;
      else open.block.code += `${line}\n`;
      continue;
    }
    const [, fence, info] = /^\s*(`{3,})(.*)$/.exec(line) ?? [];
    if (fence === undefined || info === undefined) continue;
    const [marks = '', noRun] = info.split('no-run=');
    const [language = '', ...words] = marks.trim().split(/\s+/);
    const block = { language, words, noRun, line: index + 2, code: '' };
    blocks.push(block);
    open = { fence, block };
  }
  if (open !== undefined) throw new Error(`The code block at line ${open.block.line - 1} is never closed.`);
  return blocks;
}

/** The text without its code blocks; lines keep their numbers. */
export function proseOf(text: string): string {
  const lines = text.split('\n');
  for (const { line, code } of blocksOf(text)) {
    const length = code.split('\n').length + 1;
    for (let index = line - 2; index < line - 2 + length; index++) lines[index] = '';
  }
  return lines.join('\n');
}
