// Short steps of the tests about families: a parent in the scene's queue, and children in a second queue.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob, NewJob } from '../../job/record.js';
import { LINK_STATES } from '../../job/family.js';
import type { AddReply, ChildrenReply, Instruction, JobRef, ParentLink } from '../../store/contract/index.js';
import { newJob } from './samples.js';
import type { Scene } from './scene.js';

export const FAIL: Instruction = { link: 'failed', release: 'now', doom: true };
export const CONTINUE: Instruction = { link: 'ignored', release: 'now' };
export const IGNORE: Instruction = { link: 'ignored', release: 'whenNone' };
export const REMOVE: Instruction = { link: 'removed', release: 'whenNone' };

export class FamilyScene {
  /** The queue of the parents. */
  readonly parents: Scene;
  /** The queue of the children. */
  readonly kids: Scene;
  readonly #sessions = new Map<Scene, string>();

  constructor(readonly scene: Scene) {
    this.parents = scene;
    this.kids = scene.at(`${scene.queue}-kids`);
  }

  parent(id = 'parent', onFailure?: Instruction): ParentLink {
    return { queue: this.parents.queue, id, ...(onFailure !== undefined && { onFailure }) };
  }

  kid(id: string): JobRef {
    return { queue: this.kids.queue, id };
  }

  /** Adds a parent with children in the second queue, by their ids. Without an instruction, a failure leaves the parent waiting. */
  async add(children: Record<string, Instruction | undefined>, parent: Partial<NewJob> = {}): Promise<void> {
    const { id = 'parent' } = parent;
    const jobs = [
      { id, waitsForChildren: true, ...parent },
      ...Object.entries(children).map(([child, onFailure]) => this.child(child, this.parent(id, onFailure))),
    ];
    const replies = await this.tryAdd(...jobs);
    assert(
      replies.every(({ status }) => status === 'added'),
      JSON.stringify(replies),
    );
  }

  /** A job of the second queue. */
  child(id: string, ...parents: ParentLink[]): Partial<NewJob> {
    return { id, queue: this.kids.queue, parents };
  }

  async tryAdd(...jobs: Partial<NewJob>[]): Promise<AddReply[]> {
    const { store, queue } = this.parents;
    const replies = await store.add(queue, jobs.map(newJob), this.parents.call(`producer-of-${queue}`));
    await this.relay();
    return replies;
  }

  /** Delivers all messages of both queues, for stores that deliver them later. */
  async relay(...others: Scene[]): Promise<void> {
    const scenes = [this.parents, this.kids, ...others];
    for (let round = 0; round < 10_000; round += 1) {
      let idle = true;
      for (const { store, queue } of scenes) {
        const { delivered, more } = await store.relay(queue, 100);
        if (delivered > 0 || more) idle = false;
      }
      if (idle) return;
    }
    throw new Error('relay delivered messages ten thousand times');
  }

  /** Claims one job by its id. */
  async claim(scene: Scene, id: string): Promise<ClaimedJob> {
    return scene.claimOne(await this.session(scene), { jobIds: [id] });
  }

  async session(scene: Scene): Promise<string> {
    const known = this.#sessions.get(scene) ?? (await scene.session({ maxStalls: 0 }));
    this.#sessions.set(scene, known);
    return known;
  }

  /** Claims a child and settles it. */
  async settle(id: string, outcomeOf: (job: ClaimedJob) => Outcome): Promise<void> {
    await this.kids.finish(outcomeOf(await this.claim(this.kids, id)));
    await this.relay();
  }

  links(id = 'parent', limit = 1_000): Promise<ChildrenReply> {
    const { store, queue } = this.parents;
    return store.children(queue, id, { states: [...LINK_STATES], limit });
  }

  async counts(id = 'parent'): Promise<string> {
    const { pending, processed, failed, ignored } = (await this.links(id)).counts;
    return `${pending} pending, ${processed} processed, ${failed} failed, ${ignored} ignored`;
  }

  /** The names of a job's events, with the state before. */
  async eventsOf(scene: Scene, id: string): Promise<string[]> {
    const events = (await scene.events()).filter(({ jobId }) => jobId === id);
    return events.map(({ name, prev }) => (prev === undefined ? name : `${name} from ${prev}`));
  }
}
