// The Job types that belong to a queue's or worker's type parameters: see job/typing.ts.
import type { Any, DataIn, IsJobMap, NameIn, ResultIn } from '../job/typing.js';
import type { Job } from './job.js';

/** Any job of the queue. With a map, a union: `switch (job.name)` narrows its data. */
export type JobOf<T, R, N extends string> =
  IsJobMap<T, R> extends true
    ? { [K in NameIn<T, R, N>]: Job<DataIn<T, R, K>, ResultIn<T, R, K>, K> }[NameIn<T, R, N>]
    : Job<DataIn<T, R, N>, ResultIn<T, R, N>, NameIn<T, R, N>>;

/** The job called `K`. Only a map tells jobs apart by name: with BullMQ's parameters, all jobs of a queue are of one type. */
export type NamedJob<T, R, N extends string, K extends string> =
  IsJobMap<T, R> extends true ? Job<DataIn<T, R, K>, ResultIn<T, R, K>, K> : JobOf<T, R, N>;

/** What a processor may return. */
export type ResultOf<T, R, N extends string> = ResultIn<T, R, NameIn<T, R, N>>;

/** NoInfer: without it an async function's result would be taken for its promise. */
export type Processor<T = Any, R = Any, N extends string = string> = (
  job: JobOf<T, R, N>,
  token: string,
  signal: AbortSignal,
) => Promise<ResultOf<T, R, N>> | NoInfer<ResultOf<T, R, N>>;
