// The SQL files of this engine. The build replaces this file by one that contains all SQL texts without their comments
// (scripts/finish-build.mjs).
import { join } from 'node:path';
import { sqlFilesOf } from '../../sql-files.js';

export const { sqlText, sqlFiles } = sqlFilesOf(join(__dirname, '..', 'sql'));
