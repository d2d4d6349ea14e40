// Every ts, js, cjs and sh block of the documents is true: programs compile against the built package and run to their end,
// commands exist. CONTRIBUTING.md says how a block is marked.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compilePrograms } from '../../scripts/compile-programs.mjs';
import { promisedOutput, runProgram } from '../support/processes/program.js';
import { type Block, blocksOf, documents, read, root } from './markdown.js';
import { wrongCommand } from './shell.js';

const PROGRAMS = new Set(['ts', 'js', 'cjs']);
/** Names under which a program or a command would not be looked at. */
const UNWANTED = new Set(['typescript', 'javascript', 'mjs', 'mts', 'tsx', 'jsx', 'bash', 'shell', 'zsh', 'console']);

interface Program {
  /** Where the reader finds it: `README.md:12`. */
  place: string;
  file: string;
  source: string;
  noRun: string | undefined;
}

const blocks = documents().flatMap((document) => blocksOf(read(document)).map((block) => ({ document, block })));
const programs = gatherPrograms();
let folder: string;
let messages: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'));
  mkdirSync(join(folder, 'src'));
  for (const { file, source } of programs) writeFileSync(join(folder, 'src', file), source);
  messages = programs.length > 0 ? compilePrograms(folder) : [];
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the README shows a program', () => {
  expect(programs.filter(({ place }) => place.startsWith('README.md'))).not.toEqual([]);
});

test('every block is marked in a way that this test knows', () => {
  const unknown = blocks.filter(({ block: { language, words, noRun } }) => {
    if (!PROGRAMS.has(language)) return UNWANTED.has(language) || words.length > 0 || noRun !== undefined;
    return words.some((word) => word !== 'run' && word !== 'continue') || noRun?.trim() === '';
  });
  expect(
    unknown.map(({ document, block }) => `${document}:${block.line - 1} ${[block.language, ...block.words].join(' ')}`),
  ).toEqual([]);
});

describe.each(programs)('the program at $place', ({ file, source, noRun }) => {
  test('compiles', () => {
    expect(messages.filter((message) => message.startsWith(`src/${file}(`) || !message.startsWith('src/'))).toEqual([]);
  });

  if (noRun !== undefined) return;
  test('runs to its end', async () => {
    const { end, stdout, stderr } = await runProgram(join(folder, 'out', file.replace(/\.ts$/, '.js')));
    expect(end, `${stdout}${stderr}`).toBe('exit 0');
    const promised = promisedOutput(source);
    if (promised.length > 0) expect(linesOf(stdout)).toEqual(promised);
  });
});

const shells = blocks.filter(({ block }) => block.language === 'sh');
test.each(shells.map(({ document, block }) => ({ place: `${document}:${block.line}`, block })))(
  'the commands at $place exist',
  ({ block }) => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    const wrong = block.code
      .split('\n')
      .map((line) => wrongCommand(line, { scripts, exists: (path) => existsSync(join(root, path)) }));
    expect(wrong.filter((reason) => reason !== undefined)).toEqual([]);
  },
);

// A program's lines keep the numbers that they have in the document, so that the compiler's messages point there.
function gatherPrograms(): Program[] {
  const gathered: Program[] = [];
  let last: Program | undefined;
  let lastDocument: string | undefined;
  for (const { document, block } of blocks) {
    if (!PROGRAMS.has(block.language)) continue;
    if (block.words.includes('continue')) {
      if (last === undefined || lastDocument !== document) throw new Error(`${document}:${block.line} continues nothing.`);
      last.source = padded(last.source, block);
      last.noRun ??= block.noRun;
      continue;
    }
    const place = `${document}:${block.line}`;
    const file = `${place.replace(/\W+/g, '-')}.${block.language}`;
    last = { place, file, source: padded('', block), noRun: block.noRun };
    lastDocument = document;
    gathered.push(last);
  }
  return gathered;
}

function linesOf(output: string): string[] {
  return output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function padded(before: string, { line, code }: Block): string {
  return before + '\n'.repeat(line - 1 - (before.split('\n').length - 1)) + code;
}
