// The order of the test files: files that mostly wait (for locks to end, for servers to come back) go beside files that keep a core busy, and
// the short ones come last. So all cores are busy until the end.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const WAITING = ['acceptance', 'faults', 'examples'];
const SHORT = ['unit', 'docs'];

export class MixedOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const of = (spec: TestSpecification): string | undefined => /\/test\/([^/]+)\//.exec(spec.moduleId)?.[1];
    const waiting = sorted.filter((spec) => WAITING.includes(of(spec) ?? ''));
    const short = sorted.filter((spec) => SHORT.includes(of(spec) ?? ''));
    const busy = sorted.filter((spec) => !waiting.includes(spec) && !short.includes(spec));
    return [...merged(waiting, busy), ...short];
  }
}

/** Both lists in their order, each spread evenly over the result. */
export function merged<T>(one: T[], other: T[]): T[] {
  const placed = [one, other].flatMap((list) => list.map((item, index) => ({ item, place: (index + 0.5) / list.length })));
  return placed.toSorted((a, b) => a.place - b.place).map(({ item }) => item);
}
