// The mutants, by area. Each is data: `file`, the exact text `find` (once in the file), what to `replace` it with, and the `tests` that should
// notice, of which `only` selects some by name. `equivalent` says why a change cannot be noticed; such a mutant is not tried.
import { BATCHES } from './batches.mjs';
import { BYTES } from './bytes.mjs';
import { CANCEL } from './cancel.mjs';
import { CAP } from './cap.mjs';
import { CLOSING } from './closing.mjs';
import { DEDUPLICATION } from './deduplication.mjs';
import { EMPTY_LISTS } from './empty-lists.mjs';
import { EVENTS } from './events.mjs';
import { FAMILIES } from './families.mjs';
import { FENCES } from './fences.mjs';
import { GROUPS } from './groups.mjs';
import { HAND_BACK } from './hand-back.mjs';
import { LEADER } from './leader.mjs';
import { LETTERS } from './letters.mjs';
import { LIMITS } from './limits.mjs';
import { LOCK_TABLE } from './lock-table.mjs';
import { NAMED_LOCKS } from './named-locks.mjs';
import { PRESENCE } from './presence.mjs';
import { REPLAYS } from './replays.mjs';
import { RETENTION } from './retention.mjs';
import { SCHEDULES } from './schedules.mjs';
import { STEPS } from './steps.mjs';
import { SWEEPS } from './sweeps.mjs';
import { TOKENS } from './tokens.mjs';
import { TRANSACTIONS } from './transactions.mjs';
import { TRUST } from './trust.mjs';

export const AREAS = {
  trust: TRUST,
  retention: RETENTION,
  cap: CAP,
  tokens: TOKENS,
  fences: FENCES,
  sweeps: SWEEPS,
  replays: REPLAYS,
  events: EVENTS,
  bytes: BYTES,
  'empty-lists': EMPTY_LISTS,
  presence: PRESENCE,
  'hand-back': HAND_BACK,
  'lock-table': LOCK_TABLE,
  leader: LEADER,
  'named-locks': NAMED_LOCKS,
  deduplication: DEDUPLICATION,
  schedules: SCHEDULES,
  groups: GROUPS,
  limits: LIMITS,
  families: FAMILIES,
  transactions: TRANSACTIONS,
  steps: STEPS,
  cancel: CANCEL,
  batches: BATCHES,
  closing: CLOSING,
  letters: LETTERS,
};
