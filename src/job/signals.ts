// Errors that a processor may throw to say how its job goes on. They are recognised by class or by `name`, so an error that crossed a
// process, or came from a second copy of this package, still works.

abstract class Signal extends Error {
  constructor(message: string, name: string) {
    super(message);
    this.name = name;
  }
}

/** The job fails now, whatever `attempts` says. */
export class UnrecoverableError extends Signal {
  constructor(message = 'unrecoverable') {
    super(message, 'UnrecoverableError');
  }
}

/** The processor has moved the job to delayed itself (`job.moveToDelayed`). */
export class DelayedError extends Signal {
  constructor(message = 'moved to delayed') {
    super(message, 'DelayedError');
  }
}

/** The processor has moved the job back to waiting itself (`job.moveToWait`). */
export class WaitingError extends Signal {
  constructor(message = 'moved to waiting') {
    super(message, 'WaitingError');
  }
}

/** The processor has moved the job to waiting-children itself (`job.moveToWaitingChildren`). */
export class WaitingChildrenError extends Signal {
  constructor(message = 'moved to waiting-children') {
    super(message, 'WaitingChildrenError');
  }
}

export const RATE_LIMIT_MESSAGE = 'rate limited';

/** The queue is rate limited (`worker.rateLimit(ms)`): the job goes back to waiting, and neither an attempt nor a stall counts. */
export class RateLimitError extends Signal {
  constructor(message: string = RATE_LIMIT_MESSAGE) {
    super(message, 'RateLimitError');
  }
}

type SignalName = 'UnrecoverableError' | 'DelayedError' | 'WaitingError' | 'RateLimitError';

export function isSignal(error: Error, name: SignalName): boolean {
  return error.name === name;
}
