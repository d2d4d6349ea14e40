// Deliberate defects, each of which the simulation must find. `violates` names the invariants by which it may be found; the rest says
// what is bent: verbs of the store, its clock, a process' connection, its ids, or what modules of the product export.
import { FAMILY_DEFECTS } from './family-defects.mjs';
import { GROUP_DEFECTS } from './group-defects.mjs';
import { PART_DEFECTS } from './part-defects.mjs';
import { RATE_DEFECTS } from './rate-defects.mjs';
import { SCHEDULE_DEFECTS } from './schedule-defects.mjs';
import { SPLIT_DEFECTS } from './split-defects.mjs';
import { STEP_DEFECTS } from './step-defects.mjs';
import { STORE_DEFECTS } from './store-defects.mjs';

export const DEFECTS = {
  ...STORE_DEFECTS,
  ...SCHEDULE_DEFECTS,
  ...GROUP_DEFECTS,
  ...FAMILY_DEFECTS,
  ...SPLIT_DEFECTS,
  ...RATE_DEFECTS,
  ...STEP_DEFECTS,
  ...PART_DEFECTS,
};
