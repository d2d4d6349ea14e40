// `npm run script -- <engine> <operation>`: prints the text that the server gets for an operation of src/store/<engine>/, ready to paste.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const USAGE = 'npm run script -- <engine> <operation>, such as: npm run script -- postgres settle';

/** By engine: the module that has its texts, and what an operation of it sends. */
const ENGINES = {
  sqlite: ['store/sqlite/driver/sql', ({ sqlOf }) => sqlOf],
  postgres: [
    'store/postgres/driver/sql',
    ({ sqlOf, statementOf }) =>
      (name) =>
        numbered(statementOf(name)) ?? sqlOf(name),
  ],
  redis: [
    'store/redis/driver/scripts',
    ({ script }) =>
      (name) =>
        argumentsOf(name) + script(name).text,
  ],
};

let inner;

try {
  // The output is the text alone.
  await build();
  inner = (module) => createRequire(import.meta.url)(join(root, 'dist', `${module}.js`));
  console.log(textFor(...process.argv.slice(2)));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

function textFor(engine, operation) {
  if (engine === undefined) throw new Error(USAGE);
  const [module, textOf] = ENGINES[known(engine, Object.keys(ENGINES), 'engine')];
  const loaded = inner(module);
  const names = Array.from(loaded.sections.operations.keys(), String).sort();
  if (operation === undefined) throw new Error(`${USAGE}\nThe operations of ${engine}: ${names.join(', ')}`);
  const spelt = names.includes(operation)
    ? operation
    : operation.replaceAll(...(engine === 'postgres' ? ['-', '_'] : ['_', '-']));
  return textOf(loaded)(known(spelt, names, 'operation'))
    .replaceAll(/\n{2,}/g, '\n')
    .trimEnd();
}

/** Returns the name, if it is one of the names. */
function known(name, names, what) {
  if (names.includes(name)) return name;
  const nearest = inner('runtime/option-names').closest(name, names, 3) ?? names.find((one) => one.includes(name));
  throw new Error(
    nearest === undefined
      ? `There is no ${what} ${name}. ${what === 'engine' ? `There are: ${names.join(', ')}` : 'Without a name, this command lists them.'}`
      : `There is no ${what} ${name}: did you mean ${nearest}?`,
  );
}

/** A statement of PostgreSQL with the names of its numbers. */
function numbered(statement) {
  if (statement === undefined) return undefined;
  const names = statement.parameters.map((name, index) => `$${index + 1} ${name}`);
  return `${names.length > 0 ? `-- ${names.join(', ')}\n` : ''}${statement.text}`;
}

/** What the source says of the KEYS and ARGV of a script; the server gets no comments. */
function argumentsOf(name) {
  const { sectionsOf, textsIn } = inner('store/sections');
  const source = sectionsOf(textsIn(join(root, 'src', 'store', 'redis', 'lua'))).operations.get(name);
  return /^-- KEYS: (?:.*\n--)*.*\n/m.exec(source)?.[0] ?? '';
}
