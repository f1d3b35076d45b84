// Files of a result: CSV, JSON and Parquet, made in the browser, in pieces: a million rows must not stop the page.
import { ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer';
import { show, type Column, type Row, type Value } from './api';
import { pause } from './arrange';

const PIECE = 20_000;
/** Rows of a Parquet row group. */
const GROUP = 25_000;

export type Kind = 'csv' | 'json' | 'parquet';
export const TYPES: Record<Kind, string> = { csv: 'text/csv', json: 'application/json', parquet: 'application/vnd.apache.parquet' };

/** The rows of a result, in the order in which they are shown. */
export interface Rows { columns: Column[]; count: number; at: (place: number) => Row }

export const allOf = (columns: Column[], rows: Row[], order: Uint32Array | null): Rows =>
  ({ columns, count: order ? order.length : rows.length, at: (place) => rows[order ? order[place] : place] });

const field = (text: string): string => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
/** NULL is an empty field, and an empty text is "". */
const cell = (value: Value): string => (value === null ? '' : value === '' ? '""' : field(show(value)));

function* csv({ columns, count, at }: Rows): Generator<string> {
  yield `${columns.map((column) => field(column.name)).join(',')}\r\n`;
  for (let from = 0; from < count; from += PIECE) {
    let text = '';
    for (let place = from; place < Math.min(count, from + PIECE); place += 1) text += `${at(place).map(cell).join(',')}\r\n`;
    yield text;
  }
}

/** Names that differ: a result may have two columns of one name. */
function distinct(columns: Column[]): string[] {
  const seen = new Map<string, number>();
  return columns.map(({ name }) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}_${count}`;
  });
}

function* json({ columns, count, at }: Rows): Generator<string> {
  const names = distinct(columns);
  let text = '[';
  for (let place = 0; place < count; place += 1) {
    const row = at(place);
    text += `${place ? ',' : ''}\n${JSON.stringify(Object.fromEntries(names.map((name, column) => [name, row[column]])))}`;
    if (place % PIECE === PIECE - 1) { yield text; text = ''; }
  }
  yield `${text}\n]\n`;
}

const WHOLE = new Set(['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year']);

/** A Parquet file. DECIMAL, dates and 64-bit unsigned numbers stay texts, so that no digit is lost. */
function* parquet({ columns, count, at }: Rows): Generator<Uint8Array> {
  const names = distinct(columns);
  const typeOf = (column: Column) => (WHOLE.has(column.type) && !(column.type === 'bigint' && column.unsigned) ? 'INT64' as const : column.type === 'float' || column.type === 'double' ? 'DOUBLE' as const : 'STRING' as const);
  const convert = { INT64: (value: Value) => BigInt(value as number), DOUBLE: (value: Value) => value, STRING: show };
  const types = columns.map(typeOf);
  const schema = schemaFromColumnData({ columnData: names.map((name, column) => ({ name, type: types[column], data: [], nullable: true })) });
  const writer = new ByteWriter();
  const file = new ParquetWriter({ writer, schema, statistics: false });
  for (let from = 0; from < count; from += GROUP) {
    const size = Math.min(GROUP, count - from);
    const columnData = names.map((name, column) => ({
      name, data: Array.from({ length: size }, (_, place) => { const value = at(from + place)[column]; return value === null ? null : convert[types[column]](value); }),
    }));
    file.write({ columnData, rowGroupSize: size });
    yield new Uint8Array();
  }
  file.finish();
  yield new Uint8Array(writer.getBuffer());
}

const PIECES = { csv, json, parquet };

/** The file's content. */
export async function content(kind: Kind, rows: Rows): Promise<Blob> {
  const parts: BlobPart[] = [];
  for (const piece of PIECES[kind](rows)) {
    // A blob keeps what it is made of outside of the script's memory.
    parts.push(new Blob([piece as BlobPart]));
    if (rows.count > PIECE) await pause();
  }
  return new Blob(parts, { type: TYPES[kind] });
}

export function download(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
