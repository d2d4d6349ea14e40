// The benchmark as it is typed, and the figures that it writes.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { paced } from '../wait/pace.js';
import { shared } from '../servers/shared.js';

/** Of a test that runs it. */
export const PATIENCE_MS = paced(120_000);

const BENCH = fileURLToPath(new URL('../../../bench/bench.mjs', import.meta.url));

interface Row {
  store: string;
  what: string;
  contestants: { id: string; kind: string; label: string; values: number[] }[];
}

export class Figures {
  /** What was printed. */
  readonly text: string;
  readonly rows: Row[];

  constructor(text: string, rows: Row[]) {
    this.text = text;
    this.rows = rows;
  }

  /** The figure of a contestant in the line that begins like this. */
  of(store: string, what: string, contestant = 'holdfast'): number {
    const row = this.rows.find((candidate) => candidate.store === store && candidate.what.startsWith(what));
    const value = row?.contestants.find(({ id }) => id === contestant)?.values[0];
    if (value === undefined) throw new Error(`"${what}" of ${contestant} on ${store} is not among:\n${this.text}`);
    return value;
  }
}

export async function bench(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-figures-'));
  const file = join(folder, 'figures.json');
  try {
    const command = [BENCH, ...args, '--json', file];
    const { stdout } = await promisify(execFile)(process.execPath, command, { env: { ...process.env, ...env } });
    const { rows } = JSON.parse(await readFile(file, 'utf8')) as { rows: Row[] };
    return new Figures(stdout, rows);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Where it finds the servers that the tests share. */
export async function servers(): Promise<NodeJS.ProcessEnv> {
  return { REDIS_URL: await shared('redis'), DATABASE_URL: await shared('postgres') };
}
