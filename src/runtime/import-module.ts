// Loads a module that the user named, ESM or CommonJS.
import { createRequire } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';

type Loaded = Record<string, unknown>;

/** `module`: a path, or the name of a package. */
export async function importModule(module: string): Promise<Loaded> {
  const isPath = module.startsWith('.') || isAbsolute(module);
  const specifier = isPath ? pathToFileURL(module).href : module;
  try {
    return (await import(specifier)) as Loaded;
  } catch (error) {
    // Jest runs CommonJS without import(), so fall back to require.
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!code.startsWith('ERR_VM_DYNAMIC_IMPORT')) throw error;
    const required = createRequire(join(process.cwd(), 'index.js'))(module) as Loaded;
    return { default: required, ...required };
  }
}
