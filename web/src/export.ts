// Files of a result: CSV, JSON and Parquet, made in the browser.
import { parquetWriteBuffer } from 'hyparquet-writer';
import { show, type Column, type Row, type Value } from './api';

export function csv(columns: Column[], rows: Row[]): string {
  const field = (text: string) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (values: string[]) => `${values.map(field).join(',')}\r\n`;
  // NULL is an empty field, and an empty text is "".
  const cell = (value: Value) => (value === null ? '' : value === '' ? '""' : field(show(value)));
  return line(columns.map((column) => column.name)) + rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

export const json = (columns: Column[], rows: Row[]): string =>
  `[\n${rows.map((row) => JSON.stringify(Object.fromEntries(columns.map((column, at) => [column.name, row[at]])))).join(',\n')}\n]\n`;

const WHOLE = new Set(['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year']);

/** A Parquet file. DECIMAL, dates and 64-bit unsigned numbers stay texts, so that no digit is lost. */
export function parquet(columns: Column[], rows: Row[]): ArrayBuffer {
  const seen = new Map<string, number>();
  const name = (text: string) => {
    const count = (seen.get(text) ?? 0) + 1;
    seen.set(text, count);
    return count === 1 ? text : `${text}_${count}`;
  };
  const columnData = columns.map((column, at) => {
    const values = rows.map((row) => row[at]);
    if (WHOLE.has(column.type) && !(column.type === 'bigint' && column.unsigned)) {
      return { name: name(column.name), type: 'INT64' as const, data: values.map((value) => (value === null ? null : BigInt(value as number))) };
    }
    if (column.type === 'float' || column.type === 'double') return { name: name(column.name), type: 'DOUBLE' as const, data: values };
    return { name: name(column.name), type: 'STRING' as const, data: values.map((value) => (value === null ? null : show(value))) };
  });
  return parquetWriteBuffer({ columnData }) as ArrayBuffer;
}

export function download(name: string, type: string, content: string | ArrayBuffer): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
