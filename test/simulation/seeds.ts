// Many seeds, and what the simulation says about them.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../simulation/simulate.mjs', import.meta.url));

export interface Simulated {
  code: number | null;
  output: string;
}

/** As somebody types it. */
export function simulate(...args: string[]): Promise<Simulated> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
