// The Lua files. The build replaces this file by one that contains all Lua texts without their comments, so that bundles need no other
// files (scripts/finish-build.mjs).
import { join } from 'node:path';
import { textsIn } from '../../sections.js';

export const texts: Record<string, string> = textsIn(join(__dirname, '..', 'lua'));
