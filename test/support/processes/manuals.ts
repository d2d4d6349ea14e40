// The examples of other libraries' manuals (examples/manuals, a folder for each), with nothing changed but the import: each runs on the
// store that HOLDFAST_URL tells it, ends by itself and prints what its lines `// prints: …` say.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { type Engine, newScene } from '../scenes/scene.js';
import { oneInThisRun } from '../run/matrix.js';
import { type Compiled, compiledOnce, missingOutput, promisedOutput, runProgram } from './program.js';

const manuals = fileURLToPath(new URL('../../../examples/manuals', import.meta.url));
const programs = readdirSync(manuals, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(ts|mjs|cjs)$/.test(file));

/** The gate runs each program on one of them, which its name chooses. */
const ENGINES: Engine[] = ['sqlite', 'redis', 'postgres'];

export function testManuals(engine: Engine): void {
  const chosen = programs.filter((file) => oneInThisRun(ENGINES, file).includes(engine));
  let compiled: Compiled;
  beforeAll(() => void (compiled = compiledOnce(manuals)));

  test('the manuals have programs, and they compile', () => {
    expect(programs).not.toEqual([]);
    expect(compiled.messages).toEqual([]);
  });

  test.each(chosen)(`examples/manuals/%s on ${engine}`, async (file) => {
    const promised = promisedOutput(readFileSync(join(manuals, file), 'utf8'));
    expect(promised, 'it says what it prints').not.toEqual([]);
    const { url } = await newScene(engine);
    const { end, stdout, stderr } = await runProgram(compiled.fileOf(file), { HOLDFAST_URL: url });
    expect(end, `${stdout}${stderr}`).toBe('exit 0');
    expect(missingOutput(promised, stdout), `${stdout}${stderr}`).toBeUndefined();
  });
}
