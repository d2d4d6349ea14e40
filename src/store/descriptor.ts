// Describes how to reopen a store from a thread: plain data that survives cloning. Functions, sockets, pools and class instances do not,
// some of them silently. So the user's options are copied here first, and the error names the path of a value that cannot be cloned.
import { HoldfastError } from '../errors.js';

export type StoreDescriptor =
  /** A built-in engine; its opener takes the `options`. */
  | { engine: 'sqlite' | 'redis' | 'postgres'; options: Record<string, unknown> }
  /** A user's module that exports a function returning a store. */
  | { engine: 'module'; module: string; export: string; options?: unknown };

/** Returns a copy that can be sent to a thread: bytes stay bytes, URLs become text, undefined values are left out. Throws NOT_CLONEABLE. */
export function plainCopy<T>(value: T, path: string): T {
  return copyOf(value, path) as T;
}

function copyOf(value: unknown, path: string): unknown {
  const fault = faultOf(value);
  if (fault !== undefined) {
    throw new HoldfastError(
      'NOT_CLONEABLE',
      `${path} is ${fault}, which cannot be handed to the lock thread. Pass plain options, or { module, export } to have the thread make its own store.`,
      { option: path },
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof URL) return value.href;
  // The bytes are copied: a small Buffer is a view on memory that it shares with others, and all of that memory would be sent.
  if (ArrayBuffer.isView(value)) return new Uint8Array(bytesOf(value));
  if (Array.isArray(value)) return value.map((inner, index) => copyOf(inner, `${path}[${index}]`));
  const copies = Object.entries(value).map(([key, inner]) => [key, copyOf(inner, `${path}.${key}`)] as const);
  return Object.fromEntries(copies.filter(([, copy]) => copy !== undefined));
}

/** Used in the thread: bytes arrive as Uint8Array, but drivers need Buffers. */
export function withBuffers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return bytesOf(value);
  if (Array.isArray(value)) return value.map(withBuffers);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withBuffers(inner)]));
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function faultOf(value: unknown): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return `a ${typeof value}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  if (ArrayBuffer.isView(value) || value instanceof URL) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Test runners have their own Object for each test file.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return undefined;
  return `an instance of ${value.constructor.name}`;
}
