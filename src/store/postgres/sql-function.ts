import { sqlOf } from './sql.js';

export function verb(signature: string, returns: string, body: string): string {
  const settings = sqlOf('shared/settings.sql');
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql\n${settings} AS $body$${body}$body$;\n`;
}

export function step(signature: string, returns: string, body: string): string {
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql AS $body$${body}$body$;\n`;
}
