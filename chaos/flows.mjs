// Flows of chaos: roots in the queue of the other jobs, their children in a second queue, letters in a third one, which has no worker.

export const ROOT_QUEUE = 'work';
export const CHILD_QUEUE = 'steps';
export const LETTER_QUEUE = 'letters';
