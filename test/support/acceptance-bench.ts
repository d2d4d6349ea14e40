// The benchmark as it is typed, and the figures that it prints.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const BENCH = fileURLToPath(new URL('../../bench/bench.mjs', import.meta.url));

export class Figures {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The figure that begins like this, under the name of its store. */
  of(store: string, what: string): number {
    const lines = this.text.split('\n');
    const line = lines.slice(lines.indexOf(store) + 1).find((candidate) => candidate.startsWith(`  ${what}`));
    const number = /^ {2}.{52} +([\d.,]+) /.exec(line ?? '')?.[1];
    if (number === undefined) throw new Error(`"${what}" of ${store} is not among:\n${this.text}`);
    return Number(number.replaceAll(',', ''));
  }
}

export async function bench(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Figures> {
  const { stdout } = await promisify(execFile)(process.execPath, [BENCH, ...args], { env: { ...process.env, ...env } });
  return new Figures(stdout);
}
