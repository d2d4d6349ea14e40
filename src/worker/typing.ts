// The types of what a worker's processor gets: a Job, or, with a map of job names, one of several told apart by `name`.
import type { Job } from '../handle/job.js';
import type { DataIn, IsJobMap, NameIn, ResultIn } from '../job/typing.js';

export type JobOf<Data, Result, Name extends string> =
  IsJobMap<Data, Result> extends true
    ? { [K in keyof Data & string]: Job<DataIn<Data, Result, K>, ResultIn<Data, Result, K>, K> }[keyof Data & string]
    : Job<DataIn<Data, Result, Name>, ResultIn<Data, Result, Name>, NameIn<Data, Result, Name>>;

export type ResultOf<Data, Result, Name extends string> =
  IsJobMap<Data, Result> extends true ? ResultIn<Data, Result, keyof Data & string> : ResultIn<Data, Result, Name>;

export type ProcessorOf<Data, Result, Name extends string> = (
  job: JobOf<Data, Result, Name>,
  token: string,
  signal: AbortSignal,
) => Promise<ResultOf<Data, Result, Name>> | ResultOf<Data, Result, Name>;
