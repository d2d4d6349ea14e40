// What happened, in files that no store knows of: one for each process, only ever appended to. Each line is in the kernel's hands before
// the call returns, so it outlives a SIGKILL. `at` is in milliseconds of the monotonic clock, which all processes of the host share and no
// stepped wall clock moves.
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const ENDING = '.jsonl';

export function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Answers the function that writes a line. */
export function openHistory(folder, who) {
  const descriptor = openSync(join(folder, `${who}${ENDING}`), 'a');
  return (event, fields = {}, at = now()) => {
    writeSync(descriptor, `${JSON.stringify({ at: Number(at.toFixed(3)), who, event, ...fields })}\n`);
  };
}

/** All lines of all processes, in the order of time. */
export function readHistory(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith(ENDING));
  const lines = files.flatMap((file) => {
    // Behind the last line end there may be what a kill has cut.
    const whole = readFileSync(join(folder, file), 'utf8').split('\n').slice(0, -1);
    return whole.map((line) => JSON.parse(line));
  });
  return lines.toSorted((a, b) => a.at - b.at);
}
