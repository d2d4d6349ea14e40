// What a reader is told to type must exist: the npm script, the example, the file.

export interface Known {
  scripts: Record<string, string>;
  exists(path: string): boolean;
}

/** @returns what is wrong with a line of a `sh` block, if anything */
export function wrongCommand(line: string, known: Known): string | undefined {
  const commands = line.replace(/(^|\s)#.*$/, '').split('&&');
  for (const command of commands) {
    const words = command
      .trim()
      .split(/\s+/)
      .filter((word) => word !== '');
    const reason = words.length === 0 ? undefined : wrong(words, known);
    if (reason !== undefined) return `${command.trim()}: ${reason}`;
  }
  return undefined;
}

function wrong(words: string[], { scripts, exists }: Known): string | undefined {
  const [program, verb, ...rest] = words;
  const missing = words.find((word) => /^(\.\/)?(test|examples|docs|src|scripts|bench|demo|\.ci)\//.test(word) && !exists(word));
  if (missing !== undefined) return `${missing} does not exist`;
  if (program === 'git' && verb === 'clone') return undefined;
  if (program === 'cd' || program === '.ci/run') return undefined;
  if (program === 'npm' && verb !== undefined && ['install', 'ci', 'test', 'rebuild', 'pack'].includes(verb)) return undefined;
  if (program === 'npx' && verb === 'vitest') return undefined;
  if (program === 'node' && verb !== undefined) return exists(verb) ? undefined : `${verb} does not exist`;
  if (program === 'npm' && verb === 'run') {
    const [script = '', dashes, name] = rest;
    if (scripts[script] === undefined) return `package.json has no script ${script}`;
    if (script !== 'example' || dashes !== '--' || name === undefined || name.startsWith('<')) return undefined;
    return ['ts', 'mjs', 'cjs', 'js'].some((ending) => exists(`examples/${name}.${ending}`))
      ? undefined
      : `there is no example ${name}`;
  }
  return 'is not a command that this test knows (test/docs/shell.ts)';
}
