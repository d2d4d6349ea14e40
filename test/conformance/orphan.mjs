// A process that opens a session and dies by SIGKILL, for crash hints. It runs in whatever runtime the tests run in.
import { execFile } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Deno's way of running a file. */
const START = process.versions['deno'] === undefined ? [] : ['run', '-A'];

/**
 * @param {string} program of fixtures/, which does as `plan` says
 * @param {object} plan
 * @returns {Promise<void>}
 */
export function openAndDie(program, plan) {
  const file = fileURLToPath(new URL(`fixtures/${program}`, import.meta.url));
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [...START, file, JSON.stringify(plan)], (_error, _stdout, stderr) => {
      if (child.signalCode === 'SIGKILL') resolve();
      else reject(new Error(`The process that was to die ended otherwise: ${stderr}`));
    });
  });
}
