// For stores that have no families: they refuse jobs with parents or children.
import { HoldfastError } from '../errors.js';
import type { NewJob } from '../job/record.js';
import type { ChildrenReply, RelayReply } from './contract/index.js';

export const noFamilies = {
  relay: (): RelayReply => ({ delivered: 0, more: false }),
  children: (): ChildrenReply => ({ counts: { pending: 0, processed: 0, failed: 0, ignored: 0 }, links: [] }),
};

export function refuseFamilies(engine: string, jobs: NewJob[]): void {
  if (jobs.some(({ queue, parents, waitsForChildren, deadLetter }) => queue ?? parents ?? waitsForChildren ?? deadLetter))
    throw withoutFamilies(engine);
}

export function withoutFamilies(engine: string): HoldfastError {
  return new HoldfastError('OPTION_UNSUPPORTED', `The ${engine} store cannot keep jobs with parents or children.`, {
    store: engine,
  });
}
