import { randomUUID } from 'node:crypto';

/** The id of this process among the running programs of a queue, unless the user sets `instanceId`. */
export const INSTANCE_ID = randomUUID();
