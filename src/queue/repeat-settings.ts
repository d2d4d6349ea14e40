// The `settings` of a queue: how the slots of its schedules are computed.
import { invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { checkStrategy, type RepeatStrategy } from '../job/schedule.js';

export interface AdvancedRepeatOptions {
  /** Computes the slots of patterns instead of cron. The workers of the queue need the same function. */
  repeatStrategy?: RepeatStrategy;
  /** Option of BullMQ. Accepted without effect: keys of repeatable jobs are plain text. */
  repeatKeyHashAlgorithm?: string;
}

const NAMES = new OptionNames<AdvancedRepeatOptions>({
  of: 'queue',
  known: { repeatStrategy: true, repeatKeyHashAlgorithm: true },
  // Frameworks pass the settings of a worker to its queue.
  without: ['backoffStrategy'],
});

export function checkQueueSettings(settings: unknown): void {
  if (settings === undefined) return;
  if (typeof settings !== 'object' || settings === null) throw invalidOption('settings', settings, 'an object');
  NAMES.check(settings, 'settings');
  checkStrategy((settings as AdvancedRepeatOptions).repeatStrategy);
}
