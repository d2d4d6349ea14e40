// Runs npm.
import { spawn } from 'node:child_process';

/** Resolves with the exit code. The output goes to ours. */
export function npm(args, env = {}) {
  // npm tells its scripts where it is itself; run by hand, a script looks for it on the PATH.
  const cli = process.env.npm_execpath;
  const [command, first] = cli === undefined ? ['npm', []] : [process.execPath, [cli]];
  const options = { stdio: ['ignore', 'inherit', 'inherit'], shell: cli === undefined, env: { ...process.env, ...env } };
  return new Promise((resolve, reject) => {
    spawn(command, [...first, ...args], options)
      .on('error', reject)
      .on('close', resolve);
  });
}
