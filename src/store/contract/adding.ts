// Adding jobs.
import type { NewJob } from '../../job/record.js';
import type { Call } from './call.js';

export interface Adding {
  /**
   * Adds all jobs, in order. If an id exists already, the store changes nothing and returns the status `duplicate` for it.
   * The store remembers a producer's last call for at least ten minutes.
   *
   * A job with `deduplication` may find an entry of its deduplication id. An entry names the job that owns it, and may have an end
   * (`until`) and a draft: a job to add when the owner ends. An entry counts until its end. Without an end it counts while its owner
   * exists and has not finished. A given id that exists comes first (`duplicate`, the entry stays as it is). Then:
   * - No entry counts: the job is added and owns the entry. Its end is `ttlMs` from now, except with `keepLastIfActive`.
   * - `replaceDelayed`, and the owner is delayed: the owner is removed with its draft. The job is added and owns the entry, which
   *   keeps its end (with `extend` and `ttlMs`: a new one).
   * - `keepLastIfActive`, and the owner is active: the job replaces the draft of the entry. The entry then has no end.
   * - With `extend` and `ttlMs`, the end of the entry is `ttlMs` from now, unless there is a draft or `keepLastIfActive`.
   * In the last two cases and in all others the job is not added: status `deduplicated`, with the id of the owner. A generated id is
   * used up nevertheless.
   * When the owner ends (completed, failed for good, failed by a sweep), an entry without an end is deleted. A draft is added in the
   * same step with a generated id, or its given one, and owns the entry; its delay counts from then. If its given id exists, it is
   * dropped. A removal by `change` deletes the entry and its draft, a trim of finished jobs does not. A finished job that is retried
   * owns the entry again if none counts. Sweeps delete ended entries, some in each call.
   * With a `transaction` of the caller (capability `transactions`), the jobs appear when it commits, or never. Other calls do not wait
   * for it, except an add of the same id. The store then does not remember `call`, and the caller must not repeat it: a failure ends
   * the transaction. Without the capability, or if the value is not a transaction, the store refuses the call and writes nothing.
   */
  add(queue: string, jobs: NewJob[], call: Call, transaction?: unknown): Promise<AddReply[]>;
}

export interface AddReply {
  id: string;
  /** deduplicated: `id` is the id of the job that owns the entry. noParent, otherParent, refused: see the file `families`. */
  status: 'added' | 'duplicate' | 'deduplicated' | 'noParent' | 'otherParent' | 'refused';
}
