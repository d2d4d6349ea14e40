// How to reopen a store from a thread: plain data that survives cloning. Functions, sockets, pools and class instances do not, some
// of them silently, so what users gave is looked through here first and the offending path is named.
import { HoldfastError } from '../errors.js';

export type StoreDescriptor =
  /** A built-in engine; `options` are what its opener takes. */
  | { engine: 'sqlite' | 'redis' | 'postgres'; options: Record<string, unknown> }
  /** A module of the user's that exports a function returning a store. */
  | { engine: 'module'; module: string; export: string; options?: unknown };

export function assertCloneable(value: unknown, path: string): void {
  const fault = faultOf(value);
  if (fault !== undefined) {
    throw new HoldfastError(
      'NOT_CLONEABLE',
      `${path} is ${fault}, which cannot be handed to the lock thread. Pass plain options, or { module, export } to have the thread make its own store.`,
      { option: path },
    );
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value))
    assertCloneable(inner, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
}

function faultOf(value: unknown): string | undefined {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return undefined;
  return `an instance of ${value.constructor.name}`;
}
