// The ordered lists that the Lua scripts and this store share, and the placeholders that write them into a script. The lists are part of
// the key layout: append to SETTINGS, and never reorder any of them.

/** The fields of a run text, in order; `run-texts` in lua/jobs.lua describes them. */
export const RUN_FIELDS = [
  'state',
  'seq',
  'ends',
  'timed',
  'finished',
  'ord',
  'delay',
  'made',
  'started',
  'priority',
  'stalls',
  'added',
  'processed',
] as const;

/** The counters of a queue, in the order in which they are packed; `counters` in lua/queues.lua describes them. */
const COUNTERS =
  'tick front lastId active sides delays paused limitedUntil windowEnds windowUsed windowMax event firstEvent version armed jobsVersion jobsArmed keys cap locksVersion locksArmed largest eventBytes eventMark eventMarkBefore level'.split(
    ' ',
  );

/** Counters and settings that few queues have, in the order in which they are packed behind COUNTERS. A new one needs a new level. */
const SETTINGS =
  'rateMax rateMs points completedCount completedMinute completedCurrent completedFirst failedCount failedMinute failedCurrent failedFirst turns plainTurn groupActive groupMax groupMs recheck'.split(
    ' ',
  );

const LISTS: Record<string, readonly string[]> = { run: RUN_FIELDS, counters: COUNTERS, settings: SETTINGS };

/**
 * Replaces the placeholders of a Lua text:
 *   $each{counters queue.#}           the template for each name of a list, with `#` for the name and commas between
 *   $packing{counters}                the format of a packed list
 *   $run{state..delay state=a *=%d*}  the fields of a run text from one to another, with their texts; `*` stands for all other fields
 */
export function expand(lua: string): string {
  return lua
    .replace(/\$each\{(\w+) ([^}]+)\}/g, (_, list: string, template: string) =>
      (LISTS[list] ?? []).map((name) => template.replaceAll('#', name)).join(', '),
    )
    .replace(/\$packing\{(\w+)\}/g, (_, list: string) => 'd'.repeat(LISTS[list]?.length ?? 0))
    .replace(/\$run\{(\w+)\.\.(\w+)([^}]*)\}/g, (_, first: string, last: string, given: string) => runText(first, last, given));
}

function runText(first: string, last: string, given: string): string {
  const texts = new Map(given.split(' ').map((item) => item.split('=') as [string, string]));
  const fields = RUN_FIELDS.slice(
    RUN_FIELDS.findIndex((name) => name === first),
    RUN_FIELDS.findIndex((name) => name === last) + 1,
  );
  return fields.map((name) => texts.get(name) ?? texts.get('*') ?? '').join(',');
}
