// The built package sends its scripts to Redis without their comments.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';

const FOLDER = new URL('../../../src/store/redis/lua/', import.meta.url);
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
const built = createRequire(import.meta.url)('../../../dist/store/redis/driver/lua-texts.js') as {
  luaText(file: string): string;
};

test('the build embeds every line of code of every Lua file, and no comment but the list of shared parts', () => {
  expect(files.length).toBeGreaterThan(50);
  for (const file of files) {
    const lines = readFileSync(new URL(file, FOLDER), 'utf8').split('\n');
    const code = lines.filter((line) => !line.trimStart().startsWith('--') || line.startsWith('-- use: '));
    expect(code.length).toBeLessThan(lines.length);
    expect(built.luaText(file.replaceAll('\\', '/')).split('\n')).toEqual(code);
  }
});
