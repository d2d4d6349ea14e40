// Steps: texts that a run records with its job, so that a later run finds them. No verb of their own: `write` and `settle` record them,
// `jobs` reads them, and `change` with `retry` drops them.
//
// - A job keeps its steps in the order in which they were recorded, under names that are unique within the job. A name is recorded once:
//   a later write of the same name changes nothing and gets the recorded value. So a write can be repeated after a lost reply.
// - The owner records a step with its token; a stale token records nothing (`lost`). Each step that the owner records is progress: the
//   `stalledCounter` of the job is 0 again.
// - A write without a token comes from outside: a signal. A finished job takes none (`ended`). If the job is delayed and `awaits` this
//   name, it moves to the back of waiting in the same step.
// - A job has at most MAX_STEPS steps, with at most MAX_STEP_BYTES of names and values in UTF-8. A step beyond that is `full`, and nothing
//   is changed.
// - Steps stay over attempts, stalls and retries, until the job is removed. Letters do not carry them.

export const MAX_STEPS = 1000;
export const MAX_STEP_BYTES = 1_048_576;

export interface Step {
  name: string;
  /** JSON text. */
  value: string;
}

export interface StepsQuery {
  stepsOf: string;
}

export interface StepsFound {
  /** In the order in which they were recorded; empty if the job has none or does not exist. */
  steps: Step[];
}
