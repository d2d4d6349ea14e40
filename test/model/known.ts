// Sequences on which a store once differed: they are tried before those of chance.
import type { Step } from './steps.js';

const PLAIN = {
  priority: 0,
  delayMs: 0,
  lifo: false,
  lockKey: undefined,
  group: undefined,
  deduplication: undefined,
  opts: '{}',
} as const;
const ANY = { jobIds: undefined, by: undefined, timedMs: undefined, limit: undefined } as const;
const added: Step = { verb: 'add', via: 0, producer: 'p1', jobs: [{ id: 'a', ...PLAIN }], again: false };

export const KNOWN: Step[][] = [
  // A job that nobody holds has no token, and no token is not its token.
  [added, { verb: 'extend', via: 0, extensions: [{ job: 'a', token: 'empty', durationMs: 1_005, alone: undefined }] }],
  // The same of a job that failed by stalling, which nobody has finished.
  [
    added,
    { verb: 'claim', via: 0, session: 's2', claim: { count: 1, ...ANY }, again: false },
    { verb: 'pass', via: 0, ms: 5_000 },
    { verb: 'sweep', via: 0, limit: 100 },
    {
      verb: 'settle',
      via: 0,
      outcomes: [{ kind: 'failed', job: 'a', token: 'empty', keep: {} }],
      caller: undefined,
      claim: undefined,
      again: false,
    },
    { verb: 'extend', via: 0, extensions: [{ job: 'a', token: 'empty', durationMs: 1_005, alone: undefined }] },
  ],
];
