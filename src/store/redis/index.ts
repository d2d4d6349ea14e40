export { RedisStore } from './connection.js';
export type { RedisStoreOptions } from './options.js';
