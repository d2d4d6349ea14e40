// The current build with one made-up step more in its tables, as the next release might have: processes of both must work side by side.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** By engine: its chunk, what stands there, and what the next release has instead. */
const STEPS: [chunk: string, now: RegExp, next: string][] = [
  [
    'postgres.js',
    /const MIGRATIONS = \[sqlOf\("schema\/tables"\)\];/,
    'const MIGRATIONS = [sqlOf("schema/tables"), "ALTER TABLE jobs ADD COLUMN made_up int"];',
  ],
  [
    'sqlite.js',
    /const ADDITIONS = \{\s*columns: \[\],/,
    'const ADDITIONS = { columns: [["jobs", "madeUp", "ALTER TABLE jobs ADD COLUMN madeUp INTEGER"]],',
  ],
];

/** URL of its entry file. */
export function nextBuild(): string {
  const cache = join(root, 'node_modules', '.cache');
  const folder = join(cache, `holdfast-next-${readFileSync(join(root, 'dist', '.stamp'), 'utf8').slice(0, 12)}`);
  if (!existsSync(folder)) make(cache, folder);
  return pathToFileURL(join(folder, 'dist', 'index.js')).href;
}

/** Several test files may do this at once, so the folder appears in one rename. */
function make(cache: string, folder: string): void {
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, 'making-'));
  cpSync(join(root, 'dist'), join(fresh, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(fresh, 'package.json'));
  for (const [chunk, now, next] of STEPS) {
    const file = join(fresh, 'dist', chunk);
    const text = readFileSync(file, 'utf8');
    if (!now.test(text)) throw new Error(`${chunk} of ${readdirSync(join(fresh, 'dist')).join(', ')} does not hold ${now}`);
    writeFileSync(
      file,
      text.replace(now, () => next),
    );
  }
  try {
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
