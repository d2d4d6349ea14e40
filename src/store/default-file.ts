// Warns when a default SQLite file is created. If a program names no store, its file lies in its working directory. Two programs that
// start in two folders use two files, and the jobs of one never reach the other.
import { existsSync } from 'node:fs';

const WARNING_CODE = 'HOLDFAST_DEFAULT_FILE';
const reported = new Set<string>();

/** Call it before the store is opened. Call the returned function after the store was opened. */
export function watchDefaultFile(path: string): () => void {
  if (existsSync(path) || reported.has(path)) return () => undefined;
  return () => {
    reported.add(path);
    process.emitWarning(
      `No connection was given and HOLDFAST_URL is not set, so Holdfast made the file ${path} for its jobs. ` +
        'Programs that start in another folder use another file. Name one for all of them: HOLDFAST_URL=sqlite:/path/to/jobs.db',
      { type: 'HoldfastWarning', code: WARNING_CODE },
    );
  };
}
