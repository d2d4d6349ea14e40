// The cap of a queue.
import type { Cap } from '../contract/index.js';
import type { Runner } from './runner.js';

export async function cap(run: Runner, queue: string, given: Cap | undefined): Promise<void> {
  await run('cap', queue, [given?.maxActive ?? '']);
}
