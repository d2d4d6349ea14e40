// Adding jobs.
import type { NewJob } from '../../job/record.js';
import type { Call } from './call.js';

export interface Adding {
  /**
   * Adds all jobs, in order. If an id exists already, the store changes nothing and returns the status `duplicate` for it.
   * The store remembers a producer's last call for at least ten minutes.
   * With a `transaction` of the caller (capability `transactions`), the jobs appear when it commits, or never. Other calls do not wait
   * for it, except an add of the same id. The store then does not remember `call`, and the caller must not repeat it: a failure ends
   * the transaction. Without the capability, or if the value is not a transaction, the store refuses the call and writes nothing.
   */
  add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]>;
}

export interface AddReply {
  id: string;
  status: 'added' | 'duplicate';
}
