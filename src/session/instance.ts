import { randomUUID } from 'node:crypto';

/** Who this process is among the running programs of a queue, unless its user names it. */
export const INSTANCE_ID = randomUUID();
