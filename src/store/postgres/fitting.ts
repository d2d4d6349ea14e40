import type { ClaimReply, ClaimRequest } from '../contract/index.js';

/**
 * How many jobs of a queue fit into a reply, where that was fewer than were asked for. A claim locks the rows of all jobs that it is
 * asked for before it knows their sizes, and other claims pass them by meanwhile. So the next claim asks for few more than fit.
 */
export class Fitting {
  readonly #counts = new Map<string, number>();

  /** The request with the count that is worth asking for. */
  limit(queue: string, request: ClaimRequest): ClaimRequest {
    const count = this.#counts.get(queue);
    return count === undefined || count >= request.count || request.jobIds !== undefined ? request : { ...request, count };
  }

  /** `sent` is what `limit` made of `asked`. */
  learn(queue: string, asked: ClaimRequest, sent: ClaimRequest, reply: ClaimReply): ClaimReply {
    const got = reply.jobs.length;
    if (reply.more === true) {
      this.#counts.set(queue, 2 * got);
    } else if (sent !== asked && got >= sent.count && !reply.drained) {
      // All that was asked for fitted, so more may.
      this.#counts.set(queue, 2 * sent.count);
      reply.more = true;
    } else if (sent === asked && asked.jobIds === undefined) {
      this.#counts.delete(queue);
    }
    return reply;
  }
}
