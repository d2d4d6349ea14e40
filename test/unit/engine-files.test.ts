// The engines have the same file for the same idea. What only one engine needs lies in a folder of that engine.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ENGINES = ['memory', 'sqlite', 'postgres', 'redis'];
const store = join(import.meta.dirname, '..', '..', 'src', 'store');

function filesOf(engine: string): string[] {
  const entries = readdirSync(join(store, engine), { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

it('has at least four of five file names of the engines in all of them', () => {
  const engines = ENGINES.map(filesOf);
  const names = [...new Set(engines.flat())];
  const partial = names.filter((name) => !engines.every((files) => files.includes(name)));
  expect(names.length).toBeGreaterThan(15);
  expect(partial.length / names.length, `not in all engines: ${partial.join(', ')}`).toBeLessThanOrEqual(0.2);
});
