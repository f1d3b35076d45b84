// The server's HTTP interface, as the console uses it. The session is an HttpOnly cookie, so no script ever sees the token.
import { signal } from '@preact/signals';

export interface Column {
  name: string; type: string; schema?: string; table?: string; nullable?: boolean; unsigned?: boolean;
  length?: number; decimals?: number; collation?: string; encoding?: string;
}
export type Value = null | number | string | boolean | object;
export type Row = Value[];
export interface Warning { level: string; code: number; message: string }

/** One result of a statement: rows with columns, or a count of changed rows. */
export interface Result {
  columns?: Column[]; rows?: Row[]; row_count?: number; truncated?: boolean;
  affected_rows?: number; last_insert_id?: number; info?: string; warnings?: number;
}
export interface Answer { results: Result[]; warnings?: Warning[]; duration_us?: number; connection_id?: number }

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: number, readonly sqlstate: string, message: string, readonly results: Result[] = []) {
    super(message);
  }
  /** The error as a client of the MySQL protocol would print it. */
  get text(): string {
    return this.code ? `${this.code} (${this.sqlstate}): ${this.message}` : this.message;
  }
}

export interface Me { user: string; host?: string; version?: string }
/** Who is logged in; undefined until the server has said so, null when nobody is. */
export const me = signal<Me | null | undefined>(undefined);

export const errorText = (error: unknown): string =>
  error instanceof ApiError ? error.text : error instanceof Error ? error.message : String(error);

function headers(accept: string, json: boolean): Record<string, string> {
  const all: Record<string, string> = { Accept: accept, 'X-Squall': '1' };
  if (json) all['Content-Type'] = 'application/json';
  return all;
}

async function refusal(response: Response): Promise<ApiError> {
  let body: { error?: { code?: number; sqlstate?: string; message?: string } | string; results?: Result[] } = {};
  try { body = await response.json(); } catch { /* the answer is not JSON: the status says enough */ }
  const error = typeof body.error === 'string' ? { message: body.error } : body.error ?? {};
  return new ApiError(response.status, error.code ?? 0, error.sqlstate ?? '', error.message ?? `HTTP ${response.status} ${response.statusText}`, body.results);
}

const isLines = (response: Response): boolean => response.headers.get('content-type')?.includes('ndjson') ?? false;

async function send(method: string, path: string, body?: unknown, accept = 'application/json', signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method, headers: headers(accept, body !== undefined), credentials: 'same-origin', cache: 'no-store',
      body: body === undefined ? undefined : JSON.stringify(body), signal,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 0, '', 'The server does not answer');
  }
  if (response.status === 401 && me.value) me.value = null;
  // A stream that ends with an error has the results before it: its reader throws.
  if (response.ok || (response.status !== 401 && isLines(response))) return response;
  throw await refusal(response);
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(method, path, body);
  const text = await response.text();
  return (text === '' ? {} : JSON.parse(text)) as T;
}

export async function whoAmI(): Promise<void> {
  try {
    me.value = await call<Me>('GET', '1.0/me');
  } catch (error) {
    me.value = null;
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
  }
}

export async function login(user: string, password: string): Promise<void> {
  const answer = await call<{ user: string }>('POST', '1.0/login', { user, password });
  me.value = { user: answer.user };
}

export async function logout(): Promise<void> {
  try { await call('DELETE', '1.0/login'); } finally { me.value = null; }
}

export interface Options { parameters?: Value[]; schema?: string; id?: string; max_rows?: number }

/** Runs statements and waits for all results. */
export const run = (sql: string, options: Options = {}): Promise<Answer> => call<Answer>('POST', '1.0/sql', { sql, ...options });

export type Item = Record<string, Value>;

export function items(result: Result | undefined): Item[] {
  const names = (result?.columns ?? []).map((column) => column.name.toLowerCase());
  return (result?.rows ?? []).map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
}

/** Runs one query and gives its rows as objects; names of columns are in lower case. */
export async function select(sql: string, parameters?: Value[], schema?: string): Promise<Item[]> {
  return items((await run(sql, { parameters, schema })).results[0]);
}

/** As `select`, but no rows where the object is missing or the account may not read it. */
export async function selectIfThere(sql: string, parameters?: Value[]): Promise<Item[]> {
  try {
    return await select(sql, parameters);
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0 && error.status !== 401) return [];
    throw error;
  }
}

export interface Sink {
  columns(columns: Column[]): void;
  rows(rows: Row[]): void;
  end(end: Result & { duration_us?: number; warning_list?: Warning[] }): void;
}

type Line = Row | { columns?: Column[]; end?: Result; error?: { code: number; sqlstate: string; message: string } };

/** Runs statements and hands over the rows as they arrive, one JSON text a line. */
export async function stream(sql: string, options: Options, sink: Sink, signal: AbortSignal): Promise<void> {
  const response = await send('POST', '1.0/sql', { sql, ...options }, 'application/x-ndjson', signal);
  if (!isLines(response)) {
    // A server, or a proxy, that gives the answer as a whole.
    const answer = await response.json() as Answer;
    for (const result of answer.results) {
      if (result.columns) { sink.columns(result.columns); sink.rows(result.rows ?? []); }
      sink.end({ ...result, columns: undefined, rows: undefined });
    }
    sink.end({ duration_us: answer.duration_us, warning_list: answer.warnings });
    return;
  }
  if (!response.body) throw new ApiError(0, 0, '', 'The browser cannot read a streamed answer');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  const take = (text: string) => {
    // One call of the parser for all complete lines of a chunk: a million rows are a million lines.
    const lines = JSON.parse(`[${text.trim().replaceAll('\n', ',')}]`) as Line[];
    let rows: Row[] = [];
    const flush = () => { if (rows.length) { sink.rows(rows); rows = []; } };
    for (const line of lines) {
      if (Array.isArray(line)) { rows.push(line); continue; }
      flush();
      if (line.error) throw new ApiError(response.status, line.error.code, line.error.sqlstate, line.error.message);
      if (line.columns) sink.columns(line.columns);
      if (line.end) sink.end(line.end);
    }
    flush();
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    left += value;
    const cut = left.lastIndexOf('\n');
    if (cut < 0) continue;
    const whole = left.slice(0, cut);
    left = left.slice(cut + 1);
    if (whole.trim()) take(whole);
  }
  if (left.trim()) take(left);
}

/** How far a running statement is, in the optimizer's unit of cost; null for a short one. */
export interface Progress { elapsed_us: number; work_done: number | null; work_expected: number | null }
export const progressOf = (id: string): Promise<Progress> => call('GET', `1.0/statements/${encodeURIComponent(id)}`);
export const cancel = (id: string): Promise<unknown> => call('DELETE', `1.0/statements/${encodeURIComponent(id)}`);

/** A name as SQL writes it. */
export const quoteName = (name: string): string => '`' + name.replaceAll('`', '``') + '`';
/** A text as SQL writes it, with backslash escapes on (the default sql_mode). */
export const quoteText = (text: string): string => "'" + text.replaceAll('\\', '\\\\').replaceAll("'", "''") + "'";

const NUMBERS = new Set(['tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', 'double', 'year', 'bit']);
export const isNumber = (column: Column): boolean => NUMBERS.has(column.type);
export const isTime = (column: Column): boolean => column.type === 'date' || column.type === 'datetime' || column.type === 'timestamp';

export function show(value: Value | undefined): string {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) { count /= 1024; at += 1; }
  return `${at === 0 ? count : count.toFixed(count < 10 ? 2 : 1)} ${units[at]}`;
}
