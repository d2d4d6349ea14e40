// The rules of a queue: settings that few queues have, as one text in its row. The text is null for all other queues.
import type { GroupRules, MetricsSetting, Rate } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';

export interface QueueRules {
  rate?: Rate;
  metrics?: MetricsSetting;
  /** Present once the queue has had a group. */
  groups?: GroupRules;
}

interface Ruled {
  readonly queue: number;
  rules: Readonly<QueueRules>;
}

export class Rules {
  readonly #write: Statement;

  constructor(db: Database) {
    this.#write = sql(db, 'set-rules', 'rules queue');
  }

  /** Changes some rules. null removes a rule. */
  set(queue: Ruled, change: { [R in keyof QueueRules]: QueueRules[R] | null }): void {
    const set = Object.entries({ ...queue.rules, ...change }).filter(([, rule]) => rule !== null);
    queue.rules = Object.fromEntries(set) as QueueRules;
    this.#write.run(set.length === 0 ? null : JSON.stringify(queue.rules), queue.queue);
  }
}
