// Writes data, progress, logs and steps of jobs, and records events of users. A write with a token must change nothing if the token is
// stale (`writes` in lua/write.lua).
import type { SettleStatus } from '../../job/outcome.js';
import type { Write, WriteReply } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import type { Runner } from './driver/runner.js';
import type { ScriptName } from './driver/scripts.js';
import { freeText } from './record.js';
import { STATUSES } from './settle.js';
import type { Engine } from './driver/engine.js';

/** Writes of one script, if some of them record steps: 200 steps take Redis about 2 ms. */
const WITH_STEPS_AT_ONCE = 200;

export async function write({ run }: Engine, queue: string, writes: Write[]): Promise<WriteReply[]> {
  if (!writes.some(isStep)) return writePart(run, queue, 'write', writes);
  const replies: WriteReply[] = [];
  for (let first = 0; first < writes.length; first += WITH_STEPS_AT_ONCE) {
    const part = writes.slice(first, first + WITH_STEPS_AT_ONCE);
    replies.push(...(await writePart(run, queue, 'write-steps', part)));
  }
  return replies;
}

async function writePart(run: Runner, queue: string, name: ScriptName, writes: Write[]): Promise<WriteReply[]> {
  const replies = (await run(name, queue, writes.flatMap(writeArguments))) as (string | number)[];
  return writes.map((item, index) => {
    const status = STATUSES[replies[2 * index] as string] as SettleStatus;
    const detail = replies[2 * index + 1];
    if (isStep(item)) return status === 'done' ? { status, value: detail as string } : { status };
    return (detail as number) < 0 ? { status } : { status, count: detail as number };
  });
}

function isStep({ kind }: Write): boolean {
  return kind === 'step';
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
      return ['s', write.jobId, token, write.value, write.name];
  }
}
