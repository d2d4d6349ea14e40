// While it runs: on a terminal one line that changes, elsewhere a line now and then.
import { progressLine } from './report.mjs';

export function progressWith(settings, quietMs) {
  let toldAt = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const line = progressLine(progress, settings);
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
    else if (progress.ms - toldAt >= quietMs) {
      toldAt = progress.ms;
      console.log(line);
    }
  };
}
