// Each program in examples/ compiles against the built package, ends by itself and prints what its lines `// prints: …` say.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Compiled, compiledOnce, missingOutput, promisedOutput, runProgram } from '../support/processes/program.js';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
const files = readdirSync(examples).filter((file) => /\.(ts|mjs|cjs|js)$/.test(file));
let compiled: Compiled;
beforeAll(() => void (compiled = compiledOnce(examples)));

test('there are examples, and they compile', () => {
  expect(files).not.toEqual([]);
  expect(compiled.messages).toEqual([]);
});

describe.each(files)('examples/%s', (file) => {
  const promised = promisedOutput(readFileSync(join(examples, file), 'utf8'));

  test('says what it prints', () => {
    expect(promised).not.toEqual([]);
  });

  test('prints it and ends', async () => {
    const { end, stdout, stderr } = await runProgram(compiled.fileOf(file));
    expect(end, `${stdout}${stderr}`).toBe('exit 0');
    expect(missingOutput(promised, stdout), stdout).toBeUndefined();
  });
});
