// Groups of jobs in a run: how many there are, and how many jobs of each the workers let run at once.

export const GROUPS = 2;
export const GROUP_CONCURRENCY = 2;
