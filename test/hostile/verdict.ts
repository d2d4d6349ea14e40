// Accepted or refused: there is no third way out. A refusal is a HoldfastError with a documented code, and no promise is left alone with
// its rejection.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { FightsBack } from './odd-values.js';

const manual = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
const DOCUMENTED = new Set([...manual.matchAll(/^### (.+)$/gm)].map((match) => match[1]));

/** Undefined when it was accepted, and then `value` is there. */
export interface Verdict<T> {
  refused?: HoldfastError;
  /** The caller's own getter has thrown: that is the caller's affair, as long as nothing was done. */
  thrownBack?: true;
  value?: T;
}

export async function verdictOn<T>(act: () => T | Promise<T>): Promise<Verdict<T>> {
  try {
    return { value: await act() };
  } catch (error) {
    if (error instanceof FightsBack) return { thrownBack: true };
    if (!(error instanceof HoldfastError))
      throw new Error(`neither accepted nor refused, but thrown: ${String((error as Error)?.stack ?? error)}`, { cause: error });
    if (!DOCUMENTED.has(error.code)) throw new Error(`${error.code} is not in docs/errors.md`, { cause: error });
    if (error.message === '') throw new Error(`${error.code} does not say what to do`);
    return { refused: error };
  }
}

/** For a whole file: what nobody caught, and what has got into every object. */
export function watchForDamage(): void {
  const loose: unknown[] = [];
  const note = (reason: unknown): void => void loose.push(reason);
  const inherited = (): string[] => {
    const names: string[] = [];
    for (const name in {}) names.push(name);
    return [...names, ...Object.getOwnPropertyNames(Object.prototype).sort()];
  };
  const before = inherited();
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(async () => {
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(loose, 'rejections that nobody caught').toEqual([]);
    expect(inherited(), 'properties of every object').toEqual(before);
  });
}
