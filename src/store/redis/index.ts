export { RedisStore } from './connection.js';
export type { RedisStoreOptions } from './driver/options.js';
