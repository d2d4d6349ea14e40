// The version of the package. The build replaces this file by one that contains the version, so that bundles need no files beside them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const manifest = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8')) as { version: string };

export const VERSION: string = manifest.version;
