// The committed table of costs, test/cost/table.txt: reading, writing and comparing it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Counts } from './counters.js';

const FILE = join(import.meta.dirname, 'table.txt');
const HEAD = `# What one job costs each store: engine, kind of line, jobs in a call. docs/contributing/cost.md says what the counts are.
# Do not edit: npm run cost -- --write
`;
/** Counts that the engine decides too, with its plans and its pages. They are compared only on the version that the table was written with. */
const OF_ENGINE = ['read', 'buffers', 'wal'];
/** A count that grew by more than this part fails. */
const TOLERANCE = 0.03;

/** Of one engine. */
export interface Table {
  version: string;
  /** By title. */
  lines: Record<string, Counts>;
}

export type Tables = Record<string, Table>;

export interface Change {
  /** The line and the count. */
  name: string;
  before: number | undefined;
  now: number | undefined;
  /** In parts of the count before. */
  by: number;
  verdict: 'dearer' | 'cheaper' | 'same';
}

export const readTables = (): Tables => parse(readFileSync(FILE, 'utf8'));

export function parse(text: string): Tables {
  const tables: Tables = {};
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const [title = '', rest = ''] = line.split(': ');
    const [engine = ''] = title.split(' ');
    const table = (tables[engine] ??= { version: rest, lines: {} });
    if (title === engine) continue;
    table.lines[title] = Object.fromEntries(
      rest.split(', ').map((count): [string, number] => {
        const [name = '', value] = count.split(' ');
        return [name, Number(value)];
      }),
    );
  }
  return tables;
}

/** Writes the table of one engine anew. The others stay as they are. */
export function write(engine: string, table: Table): void {
  const tables = { ...readTables(), [engine]: table };
  writeFileSync(FILE, HEAD + Object.entries(tables).map(textOf).join(''));
}

export function textOf([engine, { version, lines }]: [string, Table]): string {
  const counts = Object.entries(lines).map(([title, line]) => {
    const list = Object.entries(line).map(([name, count]) => `${name} ${count}`);
    return `${title}: ${list.join(', ')}\n`;
  });
  return `\n${engine}: ${version}\n${counts.join('')}`;
}

/** Compares all counts of the two tables. A line or count that only one of them has is dearer: the table must be written anew. */
export function compare(before: Table, now: Table): Change[] {
  const skipped = before.version === now.version ? [] : OF_ENGINE;
  const unionOf = (...lists: (object | undefined)[]): string[] => [...new Set(lists.flatMap((one) => Object.keys(one ?? {})))];
  return unionOf(before.lines, now.lines).flatMap((title) => {
    const [old, fresh] = [before.lines[title], now.lines[title]];
    const names = unionOf(old, fresh).filter((name) => !skipped.includes(name));
    return names.map((name) => changeOf(`${title}: ${name}`, old?.[name], fresh?.[name]));
  });
}

function changeOf(name: string, before: number | undefined, now: number | undefined): Change {
  if (before === undefined || now === undefined) return { name, before, now, by: Number.NaN, verdict: 'dearer' };
  const by = now === before ? 0 : now / before - 1;
  const verdict = by > TOLERANCE ? 'dearer' : by < -TOLERANCE ? 'cheaper' : 'same';
  return { name, before, now, by, verdict };
}

export function describeChange({ name, before, now, by }: Change): string {
  const percent = Number.isNaN(by) ? '' : ` (${by < 0 ? '' : '+'}${(by * 100).toFixed(1)} %)`;
  return `${name}: before ${before ?? 'not in the table'}, now ${now ?? 'not measured'}${percent}`;
}
