// `node scripts/complete-lock.mjs`, after every change of dependencies: adds the platform packages that npm left out of package-lock.json.
// npm leaves out an optional package that the registry did not return, and `npm ci` then refuses the whole lock file, on every platform.
// An added entry has no checksum: npm writes it down on the first machine of that platform.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

/** The dependencies that a lock file names and does not contain: `{ name, version, of }`, where `of` is the entry that asks for them. */
export function missingFrom({ packages }) {
  const missing = [];
  for (const [path, entry] of Object.entries(packages)) {
    const own = path === '' ? { ...entry.dependencies, ...entry.devDependencies } : entry.dependencies;
    for (const [name, version] of Object.entries({ ...own, ...entry.optionalDependencies })) {
      if (!isFound(packages, path, name)) missing.push({ name, version, of: path });
    }
  }
  return missing;
}

/** Node's search: in the node_modules of the package itself, then of each package around it. */
function isFound(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1))) {
    if (packages[folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`] !== undefined) return true;
    if (folder === '') return false;
  }
}

function complete(lock) {
  for (const { name, version, of } of missingFrom(lock)) {
    const platform = platformOf(name);
    if (platform === undefined || !/^\d/.test(version))
      throw new Error(`${of} needs ${name}@${version}, which is no platform package`);
    const { cpu, libc, os } = platform;
    // JSON leaves out what is undefined. The order is npm's, so that its next run changes nothing.
    lock.packages[`node_modules/${name}`] = { version, cpu, dev: lock.packages[of].dev, libc, optional: true, os };
  }
  const entries = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
  return { ...lock, packages: Object.fromEntries(entries) };
}

function platformOf(name) {
  const words = name.split(/[/-]/);
  const cpu = words.find((word) => PROCESSORS.includes(word));
  if (cpu === undefined) return undefined;
  const os = words.find((word) => SYSTEMS.includes(word));
  const libc = words.some((word) => word.startsWith('musl'))
    ? 'musl'
    : words.some((word) => word.startsWith('gnu'))
      ? 'glibc'
      : undefined;
  return { cpu: [cpu], libc: libc && [libc], os: os && [os] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = process.argv[2] ?? 'package-lock.json';
  const lock = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, `${JSON.stringify(complete(lock), undefined, 2)}\n`);
}
