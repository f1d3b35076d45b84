// Names of schemas, tables and columns: for completion and for lists of choices.
import { signal } from '@preact/signals';
import { select, show } from './api';
import type { Names } from './editor';

export const SYSTEM = ['information_schema', 'performance_schema', 'mysql', 'sys', 'data_dictionary'];
export const names = signal<Names>({});
export const schemas = signal<string[]>([]);
/** A larger catalog would make the editor slow; completion then knows schemas only. */
const COLUMNS_MAX = 60_000;

export async function loadNames(): Promise<void> {
  const found: Names = {};
  for (const row of await select('SELECT schema_name AS s FROM information_schema.schemata ORDER BY 1')) found[show(row.s)] = {};
  schemas.value = Object.keys(found);
  const count = Number((await select('SELECT COUNT(*) AS n FROM information_schema.tables'))[0]?.n ?? 0);
  if (count <= COLUMNS_MAX / 10) {
    for (const row of await select('SELECT table_schema AS s, table_name AS t, column_name AS c FROM information_schema.columns ORDER BY 1, 2, ordinal_position')) {
      ((found[show(row.s)] ??= {})[show(row.t)] ??= []).push(show(row.c));
    }
  }
  names.value = found;
}

/** The schema to start with: the first that is not the server's own. */
export const firstSchema = (): string => schemas.value.find((name) => !SYSTEM.includes(name.toLowerCase())) ?? '';
