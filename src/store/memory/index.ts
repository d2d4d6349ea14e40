export { MemoryStore, type MemoryStoreOptions } from './connection.js';
export { SyncStore } from './sync.js';
