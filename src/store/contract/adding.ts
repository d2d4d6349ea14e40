// Jobs come in.
import type { NewJob } from '../../job/record.js';
import type { Call } from './call.js';

export interface Adding {
  /**
   * Adds all jobs, in order. An id that exists already changes nothing and answers `duplicate`.
   * Stores remember a producer's last call for at least ten minutes after it.
   * With a `transaction` of the caller's (capability `transactions`) the jobs come with its commit, or never; nobody else waits for it,
   * but for an add of the same id. `call` is not remembered then, and nothing may be repeated: a failure ends the transaction.
   * Without the capability, and with something that is no transaction, the call is refused and nothing is written.
   */
  add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]>;
  /**
   * The producer makes no more calls, and each of them was answered at its first try, so that none can still arrive: the store may
   * forget it at once. It forgets all others by their age.
   */
  forgetCaller(queue: string, caller: string): Promise<void>;
}

export interface AddReply {
  id: string;
  duplicate: boolean;
}
