/** The rows of the journal, behind those that are surely dead (dead-ranges.ts). */
export const journalOf = (queue: string) =>
  `journal WHERE journal.queue = ${queue} AND journal.number >= coalesce((SELECT journal_from FROM dead_ranges WHERE dead_ranges.queue = ${queue}), 0)`;
