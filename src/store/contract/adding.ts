// Adding jobs.
import type { NewJob } from '../../job/record.js';
import type { Call } from './call.js';

export interface Adding {
  /**
   * Adds all jobs, in order. If an id exists already, the store changes nothing and returns `duplicate` for it.
   * The store remembers a producer's last call for at least ten minutes.
   * With a `transaction` of the caller (capability `transactions`), the jobs appear when it commits, or never. Other calls do not wait
   * for it, except an add of the same id. The store then does not remember `call`, and the caller must not repeat it: a failure ends
   * the transaction. Without the capability, or if the value is not a transaction, the store refuses the call and writes nothing.
   */
  add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]>;
  /**
   * Forgets a producer that makes no more calls. The caller may use it only if each call got its reply at the first try, so that no
   * repetition can still arrive. The store forgets all other producers by their age.
   */
  forgetCaller(queue: string, caller: string): Promise<void>;
}

export interface AddReply {
  id: string;
  duplicate: boolean;
}
