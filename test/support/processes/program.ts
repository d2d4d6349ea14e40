// Runs a program of the docs or of examples/ in a process and an empty folder of its own.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { compilePrograms } from '../../../scripts/compile-programs.mjs';
import { paced } from '../wait/pace.js';
import { madeOnce } from '../run/run-folder.js';

/** 20 s on a machine that has nothing else to do. */
const LIMIT_MS = paced(20_000);

export interface ProgramRun {
  /** How it ended, for people: 'exit 0', 'exit 1', 'killed after 20 s' … */
  end: string;
  stdout: string;
  stderr: string;
}

export interface Compiled {
  /** What the compiler had to say. */
  messages: string[];
  /** The file to run for a program. */
  fileOf(program: string): string;
}

/** The programs of a folder, compiled once in a run of the tests. */
export function compiledOnce(folder: string): Compiled {
  const made = madeOnce(`compiled-${basename(folder)}`, (fresh) => {
    cpSync(folder, join(fresh, 'src'), { recursive: true, filter: (path) => basename(path) !== 'tsconfig.json' });
    writeFileSync(join(fresh, 'messages.json'), JSON.stringify(compilePrograms(fresh)));
  });
  const messages = JSON.parse(readFileSync(join(made, 'messages.json'), 'utf8')) as string[];
  return { messages, fileOf: (program) => join(made, 'out', program.replace(/\.ts$/, '.js')) };
}

/** `runtime`: the command that runs a file; this Node unless told otherwise. */
export function runProgram(
  file: string,
  extraEnv: Record<string, string> = {},
  runtime: string[] = [process.execPath],
): Promise<ProgramRun> {
  const [command = '', ...args] = runtime;
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-program-'));
  const { HOLDFAST_URL: _, ...env } = process.env;
  return new Promise((resolve) => {
    const child = execFile(
      command,
      [...args, file],
      { cwd, env: { ...env, ...extraEnv }, timeout: LIMIT_MS, killSignal: 'SIGKILL' },
      (_error, stdout, stderr) => {
        rmSync(cwd, { recursive: true, force: true });
        const end =
          child.exitCode !== null ? `exit ${child.exitCode}` : `killed after ${LIMIT_MS / 1000} s (it does not end by itself)`;
        resolve({ end, stdout, stderr });
      },
    );
  });
}

/** The lines `// prints: …` of a program: what its output must contain, in this order. */
export function promisedOutput(source: string): string[] {
  return [...source.matchAll(/^\s*\/\/ prints: (.+)$/gm)].map((match) => (match[1] ?? '').trim());
}

/** The first promised line that the output lacks. */
export function missingOutput(promised: string[], stdout: string): string | undefined {
  let from = 0;
  for (const line of promised) {
    const at = stdout.indexOf(line, from);
    if (at === -1) return line;
    from = at + line.length;
  }
  return undefined;
}
