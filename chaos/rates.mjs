// The rate limit of the workers: above what the producers add, so that it holds back bursts and what an outage has left, and no more.

export const RATE = { max: 4, duration: 200 };
