// The types of queues and workers. BullMQ's parameters <Data, Result, Name> work as they are. Instead of them, one map from job names to
// data and result types gives each job its types by name:
//
//   type Mail = { welcome: { data: { to: string }; result: boolean }; digest: { data: { week: number } } };
//   const queue = new Queue<Mail>('mail');
//   await queue.add('welcome', { to: 'a@example.com' });
//
// A map is distinguished from data by its shape, narrowly: literal names only, and under each name only `data` and perhaps `result`.
// If a result type is given too, the first parameter is always data.

/** The default of BullMQ's parameters: its users' code relies on it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Any = any;

type IsAny<T> = 0 extends 1 & T ? true : false;

type IsEntry<E> =
  IsAny<E> extends true
    ? false
    : [E] extends [{ data: unknown }]
      ? [keyof E] extends ['data' | 'result']
        ? true
        : false
      : false;

/** Distinguishes `{ data?: … }` (not an entry) from `{ data: … }`. */
type AllEntries<T> = false extends { [K in keyof T]-?: undefined extends T[K] ? false : IsEntry<T[K]> }[keyof T] ? false : true;

export type IsJobMap<T, Result> =
  IsAny<T> extends true
    ? false
    : IsAny<Result> extends false
      ? false
      : [keyof T] extends [never]
        ? false
        : string extends keyof T
          ? false
          : number extends keyof T
            ? false
            : AllEntries<T>;

/** The shape of a Job type. As first parameter, a Job type stands for its own three, as in BullMQ. */
interface JobShape<Data, Result, Name> {
  data: Data;
  returnvalue: Result;
  name: Name;
  attemptsMade: number;
  readonly queueName: string;
}

type IsMapped<T, Result> =
  IsJobMap<T, Result> extends true ? true : IsAny<T> extends true ? false : [T] extends [JobShape<Any, Any, Any>] ? true : false;

/** `Then` if T is a map or a Job type; never if T is data. Unresolved if T is a parameter of a generic function. */
export type IfMapped<T, Result, Then> = IsMapped<T, Result> extends true ? Then : never;

/**
 * `Then` if T is data; never if T is a map or a Job type. If T is a parameter of a generic function, the compiler accepts a `Then`: for
 * an index that it cannot resolve yet it takes the union of both branches, and `never` adds nothing to that.
 */
export type IfPlain<T, Result, Then> = { plain: Then }[IsMapped<T, Result> extends true ? never : 'plain'];

/** The same for maps alone. */
export type IfJobMap<T, Result, Then> = IsJobMap<T, Result> extends true ? Then : never;
export type IfNoJobMap<T, Result, Then> = { plain: Then }[IsJobMap<T, Result> extends true ? never : 'plain'];

type FromJob<T, Else, Which extends 'data' | 'result' | 'name'> =
  IsAny<T> extends true
    ? Else
    : [T] extends [JobShape<infer D, infer R, infer N>]
      ? { data: D; result: R; name: N }[Which]
      : Else;

export type NameIn<T, Result, Name extends string> =
  IsJobMap<T, Result> extends true ? keyof T & string : FromJob<T, Name, 'name'> & string;

/** The data of the jobs with the name `K`. */
export type DataIn<T, Result, K extends string> =
  IsJobMap<T, Result> extends true
    ? K extends keyof T
      ? T[K] extends { data: infer D }
        ? D
        : never
      : never
    : FromJob<T, T, 'data'>;

export type ResultIn<T, Result, K extends string> =
  IsJobMap<T, Result> extends true
    ? K extends keyof T
      ? T[K] extends { result: infer R }
        ? R
        : Any
      : never
    : FromJob<T, Result, 'result'>;
