// The SQL files of this engine. The build replaces this file by one that contains all SQL texts without their comments
// (scripts/finish-build.mjs).
import { join } from 'node:path';
import { textsIn } from '../../sections.js';

export const texts: Record<string, string> = textsIn(join(__dirname, '..', 'sql'));
