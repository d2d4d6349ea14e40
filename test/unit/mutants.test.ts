// The mutants of `npm run mutate` fit the sources: else they would be tried in vain, without a notice.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AREAS } from '../../mutate/mutants/index.mjs';
import { misfit } from '../../mutate/workshop.mjs';

interface Mutant {
  name: string;
  file: string;
  find: string;
  replace: string;
  tests: string[];
}

const areas = Object.entries(AREAS as Record<string, Mutant[]>);
const exists = (file: string): boolean => existsSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)));

describe.each(areas)('the mutants of %s', (_, mutants) => {
  it('fit the sources: each text is there once, and so are the tests that should notice', () => {
    const misfits = mutants.map((mutant) => [mutant.name, misfit(mutant, exists)]).filter(([, why]) => why !== undefined);
    expect(misfits).toEqual([]);
  });

  it('have names of their own', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  });
});

it('are at least 40', () => {
  expect(areas.flatMap(([, mutants]) => mutants).length).toBeGreaterThanOrEqual(40);
});

describe('whether a mutant fits', () => {
  const read = (): string => 'one two two';
  const mutant = { file: 'a', find: 'one', replace: 'three', tests: ['b'] };
  const here =
    (...files: string[]) =>
    (file: string) =>
      files.includes(file);

  it.each([
    ['its file is gone', { ...mutant }, here('b'), 'a does not exist'],
    ['its text is gone', { ...mutant, find: 'four' }, here('a', 'b'), '0 times'],
    ['its text is there twice', { ...mutant, find: 'two' }, here('a', 'b'), '2 times'],
    ['it changes nothing', { ...mutant, replace: 'one' }, here('a', 'b'), 'changes nothing'],
    ['its tests are gone', { ...mutant }, here('a'), 'b does not exist'],
  ])('is denied when %s', (_, given, present, why) => {
    expect(misfit(given, present, read)).toContain(why);
  });

  it('(N) is granted when nothing is wrong', () => {
    expect(misfit(mutant, here('a', 'b'), read)).toBeUndefined();
  });
});
