// A fixture of the fault tests in a process of its own, killed when the test ends, should it still be there.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface End {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
}

export interface Program {
  child: ChildProcess;
  ended: Promise<End>;
  /** The next time that it says this. */
  says(word: string): Promise<void>;
}

export function runFixture(name: string, plan: unknown): Program {
  const file = fileURLToPath(new URL(`../../faults/fixtures/${name}`, import.meta.url));
  const child = fork(file, [JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] });
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<End>((resolve) => child.once('close', (code, signal) => resolve({ code, signal, stderr })));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const says = (word: string): Promise<void> =>
    new Promise((resolve, reject) => {
      child.on('message', (message) => {
        if (message === word) resolve();
      });
      void ended.then((end) => reject(new Error(`It ended without saying "${word}": ${JSON.stringify(end)}`)));
    });
  return { child, ended, says };
}
