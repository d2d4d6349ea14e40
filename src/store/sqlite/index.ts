export { SqliteStore, type SqliteStoreOptions } from './connection.js';
