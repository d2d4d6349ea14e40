/** The journal rows of the queue whose row of `queues` is `row`, behind those that are surely dead (dead-ranges.ts). */
export const journalOf = (row: string) => `journal WHERE journal.queue = ${row}.queue AND journal.number >= ${row}.journal_from`;
