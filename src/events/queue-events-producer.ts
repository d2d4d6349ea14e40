// QueueEventsProducer records events of a user in the event log of a queue. Every QueueEvents of the queue emits them, in all processes.
import { StoreAccess } from '../handle/access.js';
import { queueNames } from '../job/names.js';
import { encode } from '../job/payload.js';
import { checkInteger, checkText, invalidOption } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { OptionNames } from '../runtime/option-names.js';
import { HoldfastError } from '../errors.js';
import { BASE_NAMES, BASE_IGNORED, type QueueBaseOptions } from '../store/base-options.js';
import { EVENT_NAMES } from '../store/contract/index.js';
import { leaseStore } from '../store/open.js';

/** The name of an event, and any other fields. */
export interface PublishedEvent {
  /** Any name that Holdfast does not emit itself. */
  eventName: string;
}

const NAMES = new OptionNames<QueueBaseOptions>({
  of: 'queue events producer',
  known: BASE_NAMES,
  ignored: BASE_IGNORED,
});
const MAX_NAME = 200;
/** The log keeps about 8 MiB of events of a queue; one event must not push out the others. */
const MAX_ARGS = 65_536;
/** Names that QueueEvents, or Node's emitter, emits itself. */
const RESERVED: ReadonlySet<string> = new Set([...EVENT_NAMES, ...['error', 'recovered', 'newListener', 'removeListener']]);

export class QueueEventsProducer extends ClosingEmitter<{ error: [error: Error] }> {
  readonly name: string;
  readonly opts: Readonly<QueueBaseOptions>;
  readonly #stored: string;
  readonly #access: StoreAccess;

  constructor(name: string, opts: QueueBaseOptions = {}) {
    super();
    NAMES.checked(opts);
    const names = queueNames(name, opts.prefix);
    this.name = names.name;
    this.#stored = names.stored;
    this.opts = opts;
    const onError = (error: Error): void => void this.emit('error', error);
    this.#access = new StoreAccess(`QueueEventsProducer "${name}"`, leaseStore(opts.connection, onError), onError);
  }

  /**
   * Records an event. `QueueEvents` emits it under `eventName`, with the other fields as its first argument. With `maxEvents`, about that
   * many of the newest events of the queue stay.
   */
  async publishEvent<E extends PublishedEvent>(event: E, maxEvents?: number): Promise<void> {
    if (typeof event !== 'object' || event === null) throw invalidOption('event', event, '{ eventName, … }');
    const { eventName, ...fields } = event as PublishedEvent;
    const name = checkEventName(eventName);
    const write = { kind: 'event', name, args: encodeArgs(name, this.name, fields) } as const;
    if (maxEvents !== undefined) checkInteger('maxEvents', maxEvents, { min: 1 });
    const store = await this.#access.ready();
    await store.write(this.#stored, [write]);
    if (maxEvents !== undefined) await store.forget(this.#stored, { events: maxEvents });
  }

  async waitUntilReady(): Promise<void> {
    await this.#access.ready();
  }

  get closing(): Promise<void> | undefined {
    return this.#access.closing;
  }

  close(): Promise<void> {
    return this.#access.close(async () => undefined);
  }
}

function checkEventName(name: unknown): string {
  const checked = checkText('eventName', name, MAX_NAME);
  // QueueEvents emits the events of a job as `<event>:<jobId>` too.
  if (RESERVED.has(checked.split(':', 1)[0] ?? ''))
    throw invalidOption('eventName', name, 'a name that Holdfast does not emit itself');
  return checked;
}

function encodeArgs(name: string, queue: string, fields: object): string {
  const args = encode(`Event "${name}"`, fields);
  const bytes = Buffer.byteLength(args);
  if (bytes <= MAX_ARGS) return args;
  const message = `The fields of event "${name}" take ${bytes} bytes; at most ${MAX_ARGS} are kept. Put the data into a job, and its id into the event.`;
  throw new HoldfastError('PAYLOAD_TOO_LARGE', message, { queue });
}
