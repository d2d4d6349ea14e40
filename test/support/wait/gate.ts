// A gate makes a handler last until the test opens it.

/** A promise with its handles outside. */
export interface Gate<T = void> {
  readonly opened: Promise<T>;
  open(value: T): void;
  fail(error: unknown): void;
}

const opens = new Set<() => void>();

export function newGate<T = void>(): Gate<T> {
  let open!: (value: T) => void;
  let fail!: (error: unknown) => void;
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  opens.add(() => open(undefined as T));
  return { opened, open, fail };
}

/** Opens all gates of a test that has ended, so that no handler is left waiting. */
export function openGates(): void {
  for (const open of opens) open();
  opens.clear();
}
