// The built package sends its scripts to Redis without their comments.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { textsIn } from '../../../src/store/sections.js';

const files = textsIn(fileURLToPath(new URL('../../../src/store/redis/lua/', import.meta.url)));
const built = createRequire(import.meta.url)('../../../dist/store/redis/driver/lua-texts.js') as { texts: typeof files };

test('the build embeds every line of code of every Lua file, and no comment but those that begin sections and list parts', () => {
  expect(Object.keys(built.texts)).toEqual(Object.keys(files));
  for (const [file, text] of Object.entries(files)) {
    const lines = text.split('\n');
    const code = lines.filter((line) => !line.trimStart().startsWith('--') || /^-- (name|part|use): /.test(line));
    expect(code.length).toBeLessThan(lines.length);
    expect(built.texts[file]?.split('\n')).toEqual(code);
  }
});
