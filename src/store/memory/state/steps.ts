// Records the steps of jobs of the memory store.
import { MARK } from '../../marks.js';
import type { Step } from '../../contract/index.js';
import type { StoredJob } from './queue-state.js';
import { StepList } from './step-list.js';

/** Records a step unless the name is recorded. Returns the recorded value; undefined if there is no room. */
export function recordStep(job: StoredJob, step: Step): string | undefined {
  const recorded = job.steps?.get(step.name);
  if (recorded !== undefined) return recorded;
  const steps = job.steps ?? new StepList();
  if (!steps.add(step)) return undefined;
  job.steps = steps;
  job.marks |= MARK.steps;
  job.extras = { ...job.extras, hasSteps: true };
  return step.value;
}

/** Sets the signal that a job with steps waits for, when it becomes delayed. */
export function setAwaited(job: StoredJob, name: string | undefined): void {
  if ((job.marks & MARK.steps) === 0) return;
  const { awaits: _older, ...others } = job.extras ?? {};
  job.extras = name === undefined ? others : { ...others, awaits: name };
}
