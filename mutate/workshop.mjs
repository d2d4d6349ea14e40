// A copy of the source tree in a temporary folder, in which one mutant at a time is built and tested. The sources themselves are never touched.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const LEFT_OUT = new Set(['node_modules', 'dist', '.git']);
/** A mutant may hang the tests. Past this it counts as killed. */
const LIMIT_MS = 600_000;

/** What is wrong with a mutant as data; undefined when it fits the sources. */
export function misfit({ file, find, replace, tests }, exists, read = readSource) {
  if (!exists(file)) return `${file} does not exist`;
  const places = read(file).split(find).length - 1;
  if (places !== 1) return `the text to replace is ${places} times in ${file}, not once: ${find}`;
  if (find === replace) return 'it changes nothing';
  const missing = tests.find((test) => !exists(test));
  return missing === undefined ? undefined : `${missing} does not exist`;
}

export function readSource(file) {
  return readFileSync(join(root, file), 'utf8');
}

export class Workshop {
  #folder = mkdtempSync(join(tmpdir(), 'holdfast-mutate-'));
  #running;

  constructor() {
    const filter = (source) => !LEFT_OUT.has(basename(source));
    for (const entry of readdirSync(root)) {
      if (filter(entry)) cpSync(join(root, entry), join(this.#folder, entry), { recursive: true, filter });
    }
    // A folder of its own, because builds leave their cache in it.
    mkdirSync(join(this.#folder, 'node_modules'));
    for (const entry of readdirSync(join(root, 'node_modules'))) {
      if (entry !== '.cache') symlinkSync(join(root, 'node_modules', entry), join(this.#folder, 'node_modules', entry));
    }
  }

  /** Runs the named tests with the mutant in place. `result` is killed, survived or broken (it does not compile). */
  async try({ file, find, replace, tests, only }) {
    const path = join(this.#folder, file);
    const source = readFileSync(path, 'utf8');
    // A function, or `$` in the replacement would mean something.
    writeFileSync(
      path,
      source.replace(find, () => replace),
    );
    try {
      return await this.test(tests, only);
    } finally {
      writeFileSync(path, source);
    }
  }

  async test(tests, only) {
    const { code, output } = await this.#run([
      'scripts/test.mjs',
      ...tests,
      '--bail',
      '1',
      ...(only === undefined ? [] : ['-t', only]),
    ]);
    if (/✗ build/.test(output)) return { result: 'broken', output };
    // What selects no test proves nothing.
    if (/No test files found|^0 passed/m.test(output) && !/ FAIL /.test(output)) return { result: 'broken', output };
    return { result: code === 0 ? 'survived' : 'killed', by: killerIn(output), output };
  }

  close() {
    if (this.#running !== undefined) end(this.#running);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #run(args) {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, args, {
        cwd: this.#folder,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, NO_COLOR: '1' },
        detached: true,
      });
      this.#running = child;
      let output = '';
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
      const timer = setTimeout(() => end(child), LIMIT_MS);
      child.on('error', reject);
      child.on('close', (code) => {
        clearTimeout(timer);
        this.#running = undefined;
        resolve({ code, output });
      });
    });
  }
}

/** With all that it started: the group is its own. */
function end({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/** A test, rather than a file that was stopped because a test had failed. */
function killerIn(output) {
  const failed = [...output.matchAll(/^ *FAIL +(.*)$/gm)].map(([, name]) => name.trim());
  return failed.find((name) => name.includes(' > ')) ?? failed[0] ?? 'the time limit, or an error outside of a test';
}
