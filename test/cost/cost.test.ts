// What one job costs each store, in counts that no clock decides, against a committed table: test/cost/table.txt.
// docs/contributing/cost.md says what is counted. The memory store has nothing to count but its calls.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract/index.js';
import { paced } from '../support/wait/pace.js';
import { type Counts, ENGINES, type Engine } from './counters.js';
import { costOf, LINES, titleOf } from './lines.js';
import { compare, describeChange, parse, readTables, type Table, textOf, write } from './table.js';

/** Set by scripts/cost.mjs: print or write. */
const MODE = process.env['HOLDFAST_COST'];
const ANEW = 'If that is on purpose, write the table anew: npm run cost -- --write';
const NONE: Table = { version: '', lines: {} };

describe.each(Object.keys(ENGINES) as (keyof typeof ENGINES)[])('on %s', (name) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await ENGINES[name]();
  }, paced(60_000));
  afterAll(() => engine?.close());

  async function measure(lines: typeof LINES, plant?: (store: Store) => void): Promise<Table> {
    const costs: Record<string, Counts> = {};
    for (const line of lines) costs[titleOf(name, line)] = await costOf(engine, line, plant);
    return { version: engine.version, lines: costs };
  }

  test('a job costs no more than the table says', { timeout: paced(120_000) }, async () => {
    const now = await measure(LINES);
    const changes = compare(readTables()[name] ?? NONE, now);
    const shown = (verdict: string): string[] =>
      changes.filter((change) => change.verdict === verdict).map((change) => describeChange(change));
    if (MODE !== undefined) console.log([`${name} ${engine.version}`, ...changes.map(describeChange)].join('\n'));
    if (MODE === 'write') write(name, now);
    if (MODE !== undefined) return;
    // A saving must not fail. Until the table is written anew, it only does not hold the saving.
    const cheaper = shown('cheaper');
    if (cheaper.length > 0) console.log(`Cheaper than the table says:\n${cheaper.join('\n')}\n${ANEW}`);
    const dearer = shown('dearer');
    if (dearer.length > 0) expect.fail(`Dearer than the table says:\n${dearer.join('\n')}\n${ANEW}`);
  });

  test('(N) a settle that makes one call more is found', { timeout: paced(60_000) }, async () => {
    const lines = LINES.filter(({ kind, batch }) => kind === 'kept' && batch > 1);
    const slower = await measure(lines, (store) => {
      const settle = store.settle.bind(store);
      store.settle = async (...args) => {
        await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
        return settle(...args);
      };
    });
    const before = readTables()[name] ?? NONE;
    for (const [title, counts] of Object.entries(slower.lines)) {
      const old = { ...before, lines: { [title]: before.lines[title] ?? {} } };
      const found = compare(old, { ...slower, lines: { [title]: counts } }).filter(({ verdict }) => verdict === 'dearer');
      expect(found.map((change) => change.name)).toContain(`${title}: ${name === 'redis' ? 'roundTrips' : 'statements'}`);
    }
  });
});

test('compares counts by 3 %, and finds lines that one table lacks', () => {
  const before: Table = { version: '1', lines: { 'e kept 1': { calls: 100, wal: 100, rows: 0 }, 'e gone 1': { calls: 1 } } };
  const now: Table = { version: '1', lines: { 'e kept 1': { calls: 103.1, wal: 90, rows: 0 }, 'e new 1': { calls: 1 } } };
  expect(parse(textOf(['e', before]))).toEqual({ e: before });
  const verdicts = (old: Table) => Object.fromEntries(compare(old, now).map(({ name, verdict }) => [name, verdict]));
  const found = {
    'e kept 1: calls': 'dearer',
    'e kept 1: rows': 'same',
    'e gone 1: calls': 'dearer',
    'e new 1: calls': 'dearer',
  };
  expect(verdicts(before)).toEqual({ ...found, 'e kept 1: wal': 'cheaper' });
  expect(verdicts({ ...before, version: '2' })).toEqual(found);
  expect(describeChange({ name: 'e kept 1: calls', before: 100, now: 103.1, by: 0.031, verdict: 'dearer' })).toBe(
    'e kept 1: calls: before 100, now 103.1 (+3.1 %)',
  );
});
