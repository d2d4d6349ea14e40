export { type Migrated, migratePostgres, PostgresStore } from './connection.js';
export type { PostgresStoreOptions } from './driver/options.js';
