// The queues of a run, and the server that each of them lies on where there are two.

export const QUEUE = 'q';
/** Most children of flows are here. */
export const CHILD_QUEUE = 'children';
/** No worker works here. */
export const LETTER_QUEUE = 'letters';

export function serverOf(queue) {
  return queue === CHILD_QUEUE ? 1 : 0;
}

export function isFar(one, other) {
  return serverOf(one) !== serverOf(other);
}
