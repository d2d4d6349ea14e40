// What the history calls a job: queues give the same ids.
export const jobName = (queue, id) => `${queue}/${id}`;
