// Writes data, progress and logs of jobs, and records events of users. A write with a token must change nothing if the token is stale
// (lua/write.lua).
import { unfinished } from '../unfinished.js';
import type { SettleStatus } from '../../job/outcome.js';
import type { Write, WriteReply } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import type { Runner } from './driver/runner.js';
import { freeText } from './record.js';
import { STATUSES } from './settle.js';

export async function write(run: Runner, queue: string, writes: Write[]): Promise<WriteReply[]> {
  const replies = (await run('write', queue, writes.flatMap(writeArguments))) as (string | number)[];
  return writes.map((_, index) => {
    const status = STATUSES[replies[2 * index] as string] as SettleStatus;
    const count = replies[2 * index + 1] as number;
    return count < 0 ? { status } : { status, count };
  });
}

function writeArguments(write: Write): Argument[] {
  if (write.kind === 'event') return ['e', freeText(write.name), '', freeText(write.args), ''];
  const token = write.token === undefined ? '' : `=${write.token}`;
  switch (write.kind) {
    case 'data':
      return ['d', write.jobId, token, write.data, ''];
    case 'progress':
      return ['p', write.jobId, token, write.progress, ''];
    case 'log':
      return ['l', write.jobId, token, write.row, write.keep ?? ''];
    case 'clearLogs':
      return ['c', write.jobId, token, '', write.keep ?? 0];
    case 'step':
      return unfinished('steps');
  }
}
