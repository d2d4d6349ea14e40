// Defines the tests of a facet. Each test runs on its own scene. Tests of missing capabilities are skipped, with the reason in the
// title.
import type { ConformanceOptions } from './runner.js';
import { Scene } from './scene.js';

export type Body = (scene: Scene) => Promise<void>;

export interface Test {
  (title: string, body: Body): void;
  /** Needs a second connection to the same data. */
  shared(title: string, body: Body): void;
  /** Needs data that outlives the store object. */
  durable(title: string, body: Body): void;
  /** Needs an engine that notices dead owners (crash hints). */
  hinted(title: string, body: Body): void;
  /** Needs an engine whose hints may take a living owner for dead. */
  fallible(title: string, body: Body): void;
  /** Needs a store that takes several calls of a worker at once. */
  lanes(title: string, body: Body): void;
  /** Needs a clock that can be moved by hand. */
  manual(title: string, body: Body): void;
}

export type Facet = (test: Test) => void;

export function define(
  { name, describe, it, capabilities, clock = 'real', unit = 100, open }: ConformanceOptions,
  title: string,
  facet: Facet,
): void {
  const run = (body: Body) => async (): Promise<void> => {
    const scene = new Scene(await open(), unit);
    try {
      await body(scene);
    } finally {
      await scene.close();
    }
  };
  const unless = (missing: boolean, reason: string) => (what: string, body: Body) => {
    if (!missing) it(what, run(body));
    else (it.skip ?? it)(`${what} (not on ${name}: ${reason})`, async () => {});
  };
  const test = (what: string, body: Body): void => void it(what, run(body));
  describe(title, () =>
    facet(
      Object.assign(test, {
        shared: unless(!capabilities.shared, 'one process only'),
        durable: unless(!capabilities.durable, 'nothing outlives its process'),
        hinted: unless(!capabilities.crashHints, 'it cannot tell that an owner died'),
        fallible: unless(!capabilities.crashHints || capabilities.fallibleHints !== true, 'its hints cannot be wrong'),
        lanes: unless((capabilities.lanes ?? 1) < 2, 'one call of a worker at a time'),
        manual: unless(clock !== 'manual', 'its clock cannot be moved by hand'),
      }),
    ),
  );
}
