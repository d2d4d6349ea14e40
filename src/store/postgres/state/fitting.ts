import type { ClaimReply, ClaimRequest } from '../../contract/index.js';

/**
 * Remembers how many jobs of a queue fit into a reply, if fewer fit than were requested. A claim locks the rows of all requested jobs
 * before it knows their sizes, and other claims skip these rows meanwhile. So the next claim requests few more than fit.
 */
export class Fitting {
  readonly #counts = new Map<string, number>();

  /** Returns the request with a count that is likely to fit. */
  limit(queue: string, request: ClaimRequest): ClaimRequest {
    const count = this.#counts.get(queue);
    return count === undefined || count >= request.count || request.jobIds !== undefined ? request : { ...request, count };
  }

  /** Learns from a reply. `sent` is the request that `limit` made of `asked`. */
  learn(queue: string, asked: ClaimRequest, sent: ClaimRequest, reply: ClaimReply): ClaimReply {
    const got = reply.jobs.length;
    if (reply.more === true) {
      this.#counts.set(queue, 2 * got);
    } else if (sent !== asked && got >= sent.count && !reply.drained) {
      // Everything that was requested fitted, so more may fit.
      this.#counts.set(queue, 2 * sent.count);
      reply.more = true;
    } else if (sent === asked && asked.jobIds === undefined) {
      this.#counts.delete(queue);
    }
    return reply;
  }
}
