// Families: a parent waits for its children, which may be jobs of other queues. Pure values, the same for all stores. The options of
// BullMQ become small instructions here, so that stores know instructions and not options.

/** A job of any queue, by the queue's name in the store. */
export interface JobRef {
  queue: string;
  id: string;
}

/**
 * The state of a link between a parent and a child, as the parent's queue keeps it. processed: the child has completed. failed: it has
 * failed, and the parent must not complete. ignored: it has failed, and the parent goes on.
 */
export const LINK_STATES = ['pending', 'processed', 'failed', 'ignored'] as const;

export type LinkState = (typeof LINK_STATES)[number];

/** The effect that the end of a child has on its link and its parent. */
export interface Instruction {
  /** The new state of the link. `removed` deletes the link. */
  link: Exclude<LinkState, 'pending'> | 'removed';
  /** When a waiting parent moves on: whenNone: no link is pending. now: at once. */
  release: 'whenNone' | 'now';
  /** True: the parent fails, without a run. */
  doom?: true;
}

/** A parent of a job. `onFailure` applies when the job has failed for good; absent, the link stays pending. */
export interface ParentLink extends JobRef {
  onFailure?: Instruction;
}

export const ON_COMPLETION: Instruction = { link: 'processed', release: 'whenNone' };
export const ON_REMOVAL: Instruction = { link: 'removed', release: 'whenNone' };

/** The options of a child that say what its failure means for its parents, in BullMQ's names. At most one of them is true. */
export const FAILURE_INSTRUCTIONS = {
  failParentOnFailure: { link: 'failed', release: 'now', doom: true },
  continueParentOnFailure: { link: 'ignored', release: 'now' },
  ignoreDependencyOnFailure: { link: 'ignored', release: 'whenNone' },
  removeDependencyOnFailure: { link: 'removed', release: 'whenNone' },
} as const satisfies Record<string, Instruction>;

export type FailureOption = keyof typeof FAILURE_INSTRUCTIONS;

/** A text that no two jobs share. Names of queues have no control characters. */
export function refKey({ queue, id }: JobRef): string {
  return `${queue}\n${id}`;
}

/** Groups jobs by their queues, in lists of at most `most` ids. */
export function idsByQueue(refs: JobRef[], most: number): [queue: string, ids: string[]][] {
  const lists = new Map<string, string[][]>();
  for (const { queue, id } of refs) {
    const own = lists.get(queue) ?? [];
    lists.set(queue, own);
    const last = own.at(-1);
    if (last === undefined || last.length === most) own.push([id]);
    else last.push(id);
  }
  return [...lists].flatMap(([queue, own]) => own.map((ids): [string, string[]] => [queue, ids]));
}

export function isSameJob(a: JobRef, b: JobRef): boolean {
  return a.id === b.id && a.queue === b.queue;
}
