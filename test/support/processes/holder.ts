// A process that takes locks by hand (fixtures/holder.mjs), asked step by step.
import type { QueueOptions } from 'holdfast';
import type { Moment } from '../wait/moments.js';
import { type ProcessPlan, WorkerProcess } from './worker-process.js';
import type { Scene } from '../scenes/scene.js';

export interface StepResult {
  result?: unknown;
  failed?: { message: string; code?: string };
}

export class HolderProcess extends WorkerProcess {
  #asked = new Map<string, number>();

  static async start({ url }: Scene, options: Omit<QueueOptions, 'connection'> = {}): Promise<HolderProcess> {
    const holder = new HolderProcess({ queue: 'work', connection: url, options } as ProcessPlan, 'holder.mjs');
    await holder.moment('ready');
    return holder;
  }

  async ask(step: string, plan: Record<string, unknown> = {}): Promise<StepResult> {
    const before = this.#asked.get(step) ?? 0;
    this.#asked.set(step, before + 1);
    this.send(JSON.stringify({ step, ...plan }));
    const answered: Moment = await this.moment(step, (moment) => this.all(step).indexOf(moment) === before);
    return answered as StepResult;
  }
}
