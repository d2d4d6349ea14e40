// The option `batch` of a worker: its processor gets several jobs at once.
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';

export interface BatchOptions {
  /** The most jobs of a batch, 1 to 10,000. */
  size: number;
  /** A batch with fewer jobs waits for more, for `waitMs` at most. Default: `size` if `waitMs` is given, else 1, so no batch waits. */
  minSize?: number;
  /** How long a batch waits for `minSize` jobs, in ms from its first job; then it begins with what it has. Default 1000. */
  waitMs?: number;
}

const NAMES = new OptionNames<BatchOptions>({
  of: 'worker',
  known: { size: true, minSize: true, waitMs: true },
  unsupported: { timeout: 'It is called waitMs.' },
});

const MAX_SIZE = 10_000;
const WAIT_MS = 1000;

export function checkBatch(batch: unknown): Required<BatchOptions> {
  if (typeof batch !== 'object' || batch === null || Array.isArray(batch))
    throw invalidOption('batch', batch, '{ size, minSize, waitMs }');
  NAMES.check(batch, 'batch');
  const { size, minSize, waitMs } = batch as BatchOptions;
  const most = checkInteger('batch.size', size, { min: 1, max: MAX_SIZE });
  return {
    size: most,
    minSize: checkInteger('batch.minSize', minSize ?? (waitMs === undefined ? 1 : most), { min: 1, max: most }),
    waitMs: checkInteger('batch.waitMs', waitMs ?? WAIT_MS, { max: MAX_TIMER_MS }),
  };
}
