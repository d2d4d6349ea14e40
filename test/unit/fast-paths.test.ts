// The variants of `bench/fast-paths.mjs` fit the built package: else the gain of one of them could no longer be measured.
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);

it('every variant of a fast path can be taken out of the built package', () => {
  const said = execFileSync(process.execPath, ['bench/fast-paths.mjs', '--check'], { cwd: root, encoding: 'utf8' });
  expect(said).toMatch(/^[1-9]\d variants can be taken out\.$/m);
});
