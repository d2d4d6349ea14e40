// The SQLite file of a program that names no store lies in its working directory. Two programs that start in two folders use two files,
// and jobs of one never reach the other: so the program says where a new file was made.
import { existsSync } from 'node:fs';

const WARNING_CODE = 'HOLDFAST_DEFAULT_FILE';
const reported = new Set<string>();

/** Call it before the store is opened, and the function that it returns when that succeeded. */
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
