// The times that all actors and faults agree on: locks that are short enough for many to be lost in a few minutes, and faults on both sides
// of them.
export const LOCK_MS = 5000;
export const RENEW_MS = 1500;
export const SWEEP_MS = 1000;

/** How an actor keeps its locks, whatever it is. Jobs may stall as often as they like: here it happens all the time. */
export const KEEPING = { lockDuration: LOCK_MS, lockRenewTime: RENEW_MS, stalledInterval: SWEEP_MS, maxStalledCount: 1000 };
export const SHORTER_THAN_A_LOCK = [300, 3000];
export const LONGER_THAN_A_LOCK = [LOCK_MS + 1000, LOCK_MS + 4000];
export const ABOUT_A_LOCK = [500, LOCK_MS + 4000];
