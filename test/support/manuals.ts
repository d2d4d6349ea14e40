// The examples of other libraries' manuals (examples/manuals, a folder for each), with nothing changed but the import: each runs on the
// store that HOLDFAST_URL tells it, ends by itself and prints what its lines `// prints: …` say.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compilePrograms } from '../../scripts/compile-programs.mjs';
import { type Engine, newScene } from './acceptance-scene.js';
import { missingOutput, promisedOutput, runProgram } from './program.js';

const manuals = fileURLToPath(new URL('../../examples/manuals', import.meta.url));
const programs = readdirSync(manuals, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(ts|mjs|cjs)$/.test(file));

export function testManuals(engine: Engine): void {
  let folder: string;
  let messages: string[];

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-manuals-'));
    cpSync(manuals, join(folder, 'src'), { recursive: true, filter: (path) => basename(path) !== 'tsconfig.json' });
    messages = compilePrograms(folder);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the manuals have programs, and they compile', () => {
    expect(programs).not.toEqual([]);
    expect(messages).toEqual([]);
  });

  test.each(programs)(`examples/manuals/%s on ${engine}`, async (file) => {
    const promised = promisedOutput(readFileSync(join(manuals, file), 'utf8'));
    expect(promised, 'it says what it prints').not.toEqual([]);
    const { url } = await newScene(engine);
    const { end, stdout, stderr } = await runProgram(join(folder, 'out', file.replace(/\.ts$/, '.js')), { HOLDFAST_URL: url });
    expect(end, `${stdout}${stderr}`).toBe('exit 0');
    expect(missingOutput(promised, stdout), `${stdout}${stderr}`).toBeUndefined();
  });
}
