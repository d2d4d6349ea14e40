export type { RunSql } from './add.js';
export { migratePostgres, PostgresStore } from './connection.js';
export type { PostgresStoreOptions } from './options.js';
