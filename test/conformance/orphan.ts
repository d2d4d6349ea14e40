// A process that opens a session and dies by SIGKILL, for crash hints.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** `program`: of fixtures/, which does as `plan` says. */
export function openAndDie(program: string, plan: object): Promise<void> {
  const file = fileURLToPath(new URL(`fixtures/${program}`, import.meta.url));
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [file, JSON.stringify(plan)], (_error, _stdout, stderr) => {
      if (child.signalCode === 'SIGKILL') resolve();
      else reject(new Error(`The process that was to die ended otherwise: ${stderr}`));
    });
  });
}
