// Defines the tests of a facet. Each test runs on its own scene. Tests of missing capabilities are skipped, with the reason in the
// title. Tests of levels that do not run are left out.
import type { Level } from './levels.js';
import type { ConformanceOptions } from './runner.js';
import { Scene } from './scene.js';

export type Body = (scene: Scene) => Promise<void>;

type Define = (title: string, body: Body) => void;

export interface Test extends Define {
  /** Needs a second connection to the same data. */
  shared: Define;
  /** Needs data that outlives the store object. */
  durable: Define;
  /** Needs an engine that notices dead owners (crash hints). */
  hinted: Define;
  /** Needs an engine whose hints may take a living owner for dead. */
  fallible: Define;
  /** Needs a store that takes several calls of a worker at once. */
  lanes: Define;
  /** Needs a store that keeps jobs with parents and children. */
  families: Define;
  /** Needs a clock that can be moved by hand, and whose wall clock can be set. */
  manual: Define;
  /** Needs a clock on which minutes pass without waiting. */
  moved: Define;
  /** Returns a `test` for tests that need these levels too. */
  needs(...levels: Level[]): Test;
}

export type Facet = (test: Test) => void;

/** Defines the tests of a facet that need no level outside `levels`. A facet without such a test is left out. */
export function define(options: ConformanceOptions, levels: ReadonlySet<Level>, title: string, facet: Facet): void {
  const tests: (() => void)[] = [];
  facet(testsOf(options, levels, (test) => void tests.push(test)));
  if (tests.length === 0) return;
  options.describe(title, () => {
    for (const test of tests) test();
  });
}

function testsOf(options: ConformanceOptions, levels: ReadonlySet<Level>, collect: (test: () => void) => void): Test {
  const { name, it, capabilities, clock = 'real', unit = 100, open } = options;
  const run = (body: Body) => async (): Promise<void> => {
    const scene = new Scene(await open(), unit, levels);
    try {
      await body(scene);
    } catch (failure) {
      scene.explain(failure);
      throw failure;
    } finally {
      await scene.close();
    }
  };
  const unless =
    (missing: boolean, reason: string): Define =>
    (what, body) =>
      collect(() => {
        if (!missing) it(what, run(body));
        else (it.skip ?? it)(`${what} (not on ${name}: ${reason})`, async () => {});
      });
  const test: Test = Object.assign(unless(false, ''), {
    shared: unless(!capabilities.shared, 'one process only'),
    durable: unless(!capabilities.durable, 'nothing outlives its process'),
    hinted: unless(!capabilities.crashHints, 'it cannot tell that an owner died'),
    fallible: unless(!capabilities.crashHints || capabilities.fallibleHints !== true, 'its hints cannot be wrong'),
    lanes: unless((capabilities.lanes ?? 1) < 2, 'one call of a worker at a time'),
    families: unless(capabilities.families !== true, 'its jobs have no parents or children'),
    moved: unless(clock === 'real', 'it would wait for minutes'),
    manual: unless(clock !== 'manual', 'its clock cannot be moved by hand'),
    needs: (...needed: Level[]): Test => (needed.every((level) => levels.has(level)) ? test : testsOf(options, levels, () => {})),
  });
  return test;
}
