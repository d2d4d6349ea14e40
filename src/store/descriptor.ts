// How to reopen a store from a thread: plain data that survives cloning.

export type StoreDescriptor =
  /** A built-in engine; `options` are what its opener takes. */
  | { engine: 'sqlite'; options: Record<string, unknown> }
  /** A module of the user's that exports a function returning a store. */
  | { engine: 'module'; module: string; export: string; options?: unknown };
