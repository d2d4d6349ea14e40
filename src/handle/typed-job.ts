// The Job types that belong to a queue's or worker's type parameters: see job/typing.ts.
import type { Any, DataIn, IsJobMap, NameIn, ResultIn } from '../job/typing.js';
import type { Job } from './job.js';

/** Any job of the queue. With a map it is a union: `switch (job.name)` narrows its data. */
export type JobOf<T, R = Any, N extends string = string> =
  IsJobMap<T, R> extends true
    ? { [K in NameIn<T, R, N>]: Job<DataIn<T, R, K>, ResultIn<T, R, K>, K> }[NameIn<T, R, N>]
    : Job<DataIn<T, R, N>, ResultIn<T, R, N>, NameIn<T, R, N>>;

/** The job with the name `K`. Only a map gives jobs types by name: with BullMQ's parameters, all jobs of a queue have one type. */
export type NamedJob<T, R = Any, N extends string = string, K extends string = N> =
  IsJobMap<T, R> extends true ? Job<DataIn<T, R, K>, ResultIn<T, R, K>, K> : JobOf<T, R, N>;

/** The values that a processor may return. */
export type ResultOf<T, R, N extends string> = ResultIn<T, R, NameIn<T, R, N>>;

/** NoInfer, because otherwise the promise of an async function would be taken for its result. */
type Returned<R> = Promise<R> | NoInfer<R>;

/** A processor as the user declares it. The user may also call it with only a job. */
export type Processor<T = Any, R = Any, N extends string = string> = (
  job: JobOf<T, R, N>,
  token?: string,
  signal?: AbortSignal,
) => Returned<ResultOf<T, R, N>>;

/** A processor as a worker calls it. */
export type JobProcessor<T, R, N extends string> = (
  job: JobOf<T, R, N>,
  token: string,
  signal: AbortSignal,
) => Returned<ResultOf<T, R, N>>;

/** A processor for a T that is not a map. Inside a generic function that is undecided, so BullMQ's parameters must do. */
export type PlainProcessor<T, R, N extends string> = (job: Job<T, R, N>, token: string, signal: AbortSignal) => Returned<R>;

/** A handler for each name. The type of its result depends on the name. */
export type JobHandlers<T = Any, R = Any, N extends string = string> = {
  [K in NameIn<T, R, N>]: (job: NamedJob<T, R, N, K>, token: string, signal: AbortSignal) => Returned<ResultIn<T, R, K>>;
};
