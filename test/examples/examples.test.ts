// Each program in examples/ compiles against the built package, ends by itself and prints what its lines `// prints: …` say.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compilePrograms } from '../../scripts/compile-programs.mjs';
import { missingOutput, promisedOutput, runProgram } from '../support/program.js';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
const files = readdirSync(examples).filter((file) => /\.(ts|mjs|cjs|js)$/.test(file));
let folder: string;
let messages: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'));
  cpSync(examples, join(folder, 'src'), { recursive: true, filter: (path) => basename(path) !== 'tsconfig.json' });
  messages = compilePrograms(folder);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('there are examples, and they compile', () => {
  expect(files).not.toEqual([]);
  expect(messages).toEqual([]);
});

describe.each(files)('examples/%s', (file) => {
  const promised = promisedOutput(readFileSync(join(examples, file), 'utf8'));

  test('says what it prints', () => {
    expect(promised).not.toEqual([]);
  });

  test('prints it and ends', async () => {
    const { end, stdout, stderr } = await runProgram(join(folder, 'out', file.replace(/\.ts$/, '.js')));
    expect(end, `${stdout}${stderr}`).toBe('exit 0');
    expect(missingOutput(promised, stdout), stdout).toBeUndefined();
  });
});
