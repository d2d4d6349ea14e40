// What a store can carry, as data. The conformance suite skips what an engine cannot do and prints the reason.

export interface Capabilities {
  /** Engine name for messages and docs: 'memory', 'sqlite' … */
  engine: string;
  /** More than one process can share it. */
  shared: boolean;
  /** Acknowledged writes survive a crash of the process. */
  durable: boolean;
  /** `probe` can tell that an owner died before its session expires. */
  crashHints: boolean;
  /** `add` runs the handler before it answers (for tests), so workers do not limit their concurrency. */
  inline: boolean;
}
