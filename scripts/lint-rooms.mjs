// The lint rule `rooms/imports`: which room of src/ may import which. Imports point inwards, so that a room can be read, tested
// and replaced without those around it. It sees every way of naming a module: import, export from, import(), import types and
// require. test/unit/import-rules.test.ts shows that it bites.
import { dirname, join, normalize, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

// A room may import itself and the rooms behind its name. `store` is the contract and what surrounds it; `store/open` alone
// knows the engines. Every folder in store/ is an engine, but for `store/contract`, and for `store/client`, which calls stores.
const INNER = ['errors', 'runtime', 'job', 'store'];
export const ROOMS = {
  errors: [],
  runtime: ['errors'],
  job: ['errors', 'runtime'],
  store: ['errors', 'runtime', 'job'],
  'store/<engine>': INNER,
  'store/open': [...INNER, 'store/<engine>'],
  handle: INNER,
  session: [...INNER, 'store/open'],
  'store/client': [...INNER, 'session'],
  maintenance: INNER,
  renewal: [...INNER, 'session'],
  background: [...INNER, 'store/open', 'session', 'renewal', 'maintenance'],
  lock: [...INNER, 'store/open', 'store/client', 'session', 'background'],
  queue: [...INNER, 'store/open', 'store/client', 'session', 'handle', 'lock', 'events'],
  events: [...INNER, 'store/open', 'store/client', 'handle', 'lock'],
  sandbox: ['errors', 'runtime', 'job', 'session', 'handle'],
  worker: [...INNER, 'store/open', 'store/client', 'session', 'background', 'handle', 'lock', 'sandbox'],
  testing: [...INNER, 'handle'],
  compat: [...INNER, 'handle', 'lock', 'queue', 'events', 'worker'],
  index: [...INNER, 'store/open', 'session', 'handle', 'lock', 'queue', 'events', 'sandbox', 'worker'],
};

// Packages that are not part of Node, and the one file that may import each.
export const PACKAGES = {
  'better-sqlite3': 'store/sqlite/driver/better-sqlite3.ts',
  croner: 'job/cron.ts',
  ioredis: 'store/redis/driver/driver.ts',
  pg: 'store/postgres/driver/driver.ts',
};

const src = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src');

/** @param {string} path of a file below src/, with / between folders */
function roomOf(path) {
  const [first, second, third] = path.split('/');
  if (second === undefined) return first.replace(/\.[jt]s$/, '');
  if (first !== 'store') return first;
  if (third !== undefined && second !== 'contract') return `store/${second}`;
  return second.startsWith('open.') ? 'store/open' : 'store';
}

const kindOf = (room) => (/^store\/(?!open$|client$)/.test(room) ? 'store/<engine>' : room);

/** @returns {string | undefined} what is wrong with `path` importing `specifier` */
export function offence(path, specifier) {
  if (specifier.startsWith('node:')) return undefined;
  if (!specifier.startsWith('.')) {
    const owner = PACKAGES[specifier];
    if (owner === undefined)
      return `No file of src/ may import '${specifier}': it is neither a module of Node nor listed in PACKAGES.`;
    return owner === path ? undefined : `Only src/${owner} may import '${specifier}'.`;
  }
  const target = normalize(join(dirname(path), specifier))
    .split(sep)
    .join('/');
  if (target.startsWith('../')) return `src/ may not import '${specifier}', which lies outside of src/.`;
  const from = roomOf(path);
  const to = roomOf(target);
  if (from === to) return undefined;
  const allowed = ROOMS[kindOf(from)];
  if (allowed === undefined) return `The room '${from}' has no line in ROOMS of scripts/lint-rooms.mjs: say what it may import.`;
  if (allowed.includes(kindOf(to))) return undefined;
  return `'${from}' may not import '${to}', only ${allowed.join(', ') || 'nothing'}.`;
}

const imports = {
  meta: { type: 'problem', docs: { description: 'Rooms of src/ import inwards only.' } },
  create(context) {
    const path = relative(src, context.filename).split(sep).join('/');
    const check = (node, specifier) => {
      if (typeof specifier !== 'string') return;
      const message = offence(path, specifier);
      if (message !== undefined) context.report({ node, message });
    };
    const checkSource = (node) => check(node, node.source?.value);
    return {
      ImportDeclaration: checkSource,
      ExportNamedDeclaration: checkSource,
      ExportAllDeclaration: checkSource,
      ImportExpression: checkSource,
      TSImportType: checkSource,
      CallExpression(node) {
        if (node.callee.type === 'Identifier' && node.callee.name === 'require') check(node, node.arguments[0]?.value);
      },
    };
  },
};

const onlyReexports = {
  meta: { type: 'problem', docs: { description: 'src/index.ts is a door: nothing is made there.' } },
  create(context) {
    return {
      Program(program) {
        for (const node of program.body) {
          if (node.type === 'ExportAllDeclaration' || (node.type === 'ExportNamedDeclaration' && node.source)) continue;
          context.report({ node, message: 'This file may only re-export (export … from).' });
        }
      },
    };
  },
};

export default { meta: { name: 'rooms' }, rules: { imports, 'only-reexports': onlyReexports } };
