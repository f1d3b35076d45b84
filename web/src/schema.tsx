// The page Schema: schemas, tables and views, and what each is made of.
import { useEffect, useState } from 'preact/hooks';
import { bytes, errorText, quoteName, run, select, selectIfThere, show, type Answer, type Item } from './api';
import { loadNames, SYSTEM } from './catalog';
import { ErPicture } from './er';
import { AlterTable, CreateSchema, CreateTable } from './forms';
import { Grid } from './grid';
import { openQuery } from './query';
import { Bar, Button, Dialog, Failure, Icon, Loading, SqlStep, Table, useLoad } from './ui';

const link = (...parts: string[]): string => `#/schema/${parts.map(encodeURIComponent).join('/')}`;
const full = (schema: string, table: string): string => `${quoteName(schema)}.${quoteName(table)}`;

const tablesOf = (schema: string) => select(
  'SELECT table_name AS name, table_type AS type, engine, table_rows AS n, data_length AS data, index_length AS idx, create_time AS created, table_comment AS comment FROM information_schema.tables WHERE table_schema = ? ORDER BY table_name', [schema]);

function Side({ schema, table, turn }: { schema?: string; table?: string; turn: number }) {
  const [filter, setFilter] = useState('');
  const schemas = useLoad(() => select('SELECT schema_name AS name FROM information_schema.schemata ORDER BY 1'), [turn]);
  const tables = useLoad(async () => (schema ? tablesOf(schema) : []), [schema, turn]);
  const own = (row: Item) => !SYSTEM.includes(show(row.name).toLowerCase());
  const rows = schemas.value ?? [];
  const shown = (tables.value ?? []).filter((row) => show(row.name).toLowerCase().includes(filter.toLowerCase()));
  // On a phone the list takes the room of what was chosen from it.
  const [isOpen, setOpen] = useState(!schema);
  useEffect(() => setOpen(!schema), [schema, table]);
  return (
    <aside class={`side ${isOpen ? 'open' : ''}`} aria-label="Schemas">
      <Button icon="schema" label={schema ? `${schema}${table ? ` . ${table}` : ''}: choose another` : 'Choose a schema'} kind="chooser" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
      <input type="search" aria-label="Filter tables" placeholder="Filter tables" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      <Failure error={schemas.error ?? tables.error} />
      <ul>
        {[...rows.filter(own), ...rows.filter((row) => !own(row))].map((row) => {
          const name = show(row.name);
          return (
            <li key={name}>
              <a href={link(name)} aria-current={schema === name && !table ? 'page' : undefined}><Icon name="schema" />{name}</a>
              {schema === name && <ul class="nested">{shown.slice(0, 2000).map((one) => (
                <li key={show(one.name)}><a href={link(name, show(one.name))} aria-current={table === one.name ? 'page' : undefined}>
                  <Icon name={one.type === 'BASE TABLE' ? 'table' : 'view'} />{show(one.name)}{one.n !== null && one.type === 'BASE TABLE' && <small>{Number(one.n).toLocaleString()}</small>}
                </a></li>
              ))}</ul>}
            </li>
          );
        })}
      </ul>
    </aside>
  );
}

function SchemaDetail({ schema, changed, turn }: { schema: string; changed: () => void; turn: number }) {
  const [dialog, setDialog] = useState<'table' | 'schema' | 'drop' | null>(null);
  const { value, error } = useLoad(() => tablesOf(schema), [schema, turn]);
  const system = SYSTEM.includes(schema.toLowerCase());
  const sizeOf = (row: Item) => Number(row.data ?? 0) + Number(row.idx ?? 0);
  const largest = Math.max(1, ...(value ?? []).map(sizeOf));
  const sum = (key: string) => (value ?? []).reduce((total, row) => total + Number(row[key] ?? 0), 0);
  return (
    <div class="page">
      <header><h1>{schema}</h1><span class="spring" />
        <Button icon="plus" label="Create schema" onClick={() => setDialog('schema')} />
        {!system && <><Button icon="plus" label="Create table" kind="primary" onClick={() => setDialog('table')} /><Button label="Drop schema" kind="danger" onClick={() => setDialog('drop')} /></>}
      </header>
      <Failure error={error} />
      {!value ? <Loading what="tables" /> : <>
        <div class="tiles">
          <div class="tile"><b>{value.length.toLocaleString()}</b><span>tables and views</span></div>
          <div class="tile"><b>{sum('n').toLocaleString()}</b><span>rows, estimated</span></div>
          <div class="tile"><b>{bytes(sum('data'))}</b><span>data</span></div>
          <div class="tile"><b>{bytes(sum('idx'))}</b><span>secondary indexes</span></div>
        </div>
        {!system && <section class="card"><h2>Tables and their foreign keys</h2><ErPicture schema={schema} turn={turn} /></section>}
        <section class="card"><h2>Tables</h2>
          <Table label="Tables" rows={value} empty="No table yet." columns={[
            ['Name', (row) => <a href={link(schema, show(row.name))}>{show(row.name)}</a>],
            ['Kind', (row) => (row.type === 'BASE TABLE' ? 'table' : show(row.type).toLowerCase())], ['Engine', (row) => (row.engine === null ? '' : show(row.engine))],
            ['Rows', (row) => (row.n === null ? '' : Number(row.n).toLocaleString()), 'numeric'], ['Data', (row) => (row.data === null ? '' : bytes(Number(row.data))), 'numeric'],
            ['Indexes', (row) => (row.idx === null ? '' : bytes(Number(row.idx))), 'numeric'], ['Size', (row) => (row.data === null ? '' : <Bar share={sizeOf(row) / largest} />)], ['Comment', (row) => (row.comment === null || row.type === 'VIEW' ? '' : show(row.comment))],
          ]} />
        </section>
      </>}
      {dialog === 'table' && <CreateTable schema={schema} onClose={() => setDialog(null)} onDone={() => { setDialog(null); changed(); }} />}
      {dialog === 'schema' && <CreateSchema onClose={() => setDialog(null)} onDone={() => { setDialog(null); changed(); }} />}
      {dialog === 'drop' && <Dialog title={`Drop ${schema}`} onClose={() => setDialog(null)}>
        <p>This deletes all tables of the schema with their rows.</p>
        <SqlStep danger sql={`DROP DATABASE ${quoteName(schema)}`} onDone={() => { setDialog(null); changed(); location.hash = '#/schema'; }} />
      </Dialog>}
    </div>
  );
}

const PARTS = ['Columns', 'Indexes', 'Foreign keys', 'Definition', 'Sample'] as const;
type Part = typeof PARTS[number];

function Columns({ schema, table, turn }: { schema: string; table: string; turn: number }) {
  const { value, error } = useLoad(() => select('SELECT column_name AS name, column_type AS type, is_nullable AS nullable, column_default AS dflt, column_key AS k, extra, collation_name AS coll, column_comment AS comment FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position', [schema, table]), [schema, table, turn]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="columns" />;
  return <Table label="Columns" rows={value} columns={[
    ['Name', (row) => <span class="mono">{show(row.name)}</span>], ['Type', (row) => <span class="mono">{show(row.type)}</span>],
    ['Key', (row) => (row.k ? <span class="badge on">{({ PRI: 'primary', UNI: 'unique', MUL: 'index' } as Record<string, string>)[show(row.k)] ?? show(row.k)}</span> : '')],
    ['NULL', (row) => (row.nullable === 'YES' ? 'yes' : 'no')], ['Default', (row) => (row.dflt === null ? '' : <span class="mono">{show(row.dflt)}</span>)],
    ['Extra', (row) => show(row.extra ?? '')], ['Collation', (row) => (row.coll === null ? '' : show(row.coll))], ['Comment', (row) => show(row.comment ?? '')],
  ]} />;
}

function Indexes({ schema, table, turn }: { schema: string; table: string; turn: number }) {
  const { value, error } = useLoad(() => select('SELECT index_name AS name, non_unique AS nu, column_name AS c, expression AS e, collation AS d, cardinality AS card, index_type AS type, is_visible AS visible FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? ORDER BY index_name, seq_in_index', [schema, table]), [schema, table, turn]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="indexes" />;
  const byName = new Map<string, Item[]>();
  for (const row of value) byName.set(show(row.name), [...(byName.get(show(row.name)) ?? []), row]);
  return <Table label="Indexes" rows={[...byName]} empty="No index." columns={[
    ['Name', ([name]) => <span class="mono">{name}</span>],
    ['Columns', ([, parts]) => <span class="mono">{parts.map((part) => `${part.c === null ? `(${show(part.e)})` : show(part.c)}${part.d === 'D' ? ' DESC' : ''}`).join(', ')}</span>],
    ['Unique', ([, parts]) => (Number(parts[0].nu) === 0 ? <span class="badge on">unique</span> : 'no')], ['Type', ([, parts]) => show(parts[0].type)],
    ['Visible', ([, parts]) => (parts[0].visible === 'NO' ? 'no' : 'yes')], ['Distinct values', ([, parts]) => (parts.at(-1)?.card === null ? '' : Number(parts.at(-1)?.card).toLocaleString()), 'numeric'],
  ]} />;
}

function ForeignKeys({ schema, table, turn }: { schema: string; table: string; turn: number }) {
  const { value, error } = useLoad(() => select(
    'SELECT k.constraint_name AS name, k.table_name AS child, k.column_name AS c, k.referenced_table_schema AS rs, k.referenced_table_name AS rt, k.referenced_column_name AS rc, r.update_rule AS u, r.delete_rule AS d FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name WHERE k.table_schema = ? AND k.referenced_table_name IS NOT NULL AND (k.table_name = ? OR k.referenced_table_name = ?) ORDER BY 1, k.ordinal_position', [schema, table, table]), [schema, table, turn]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="foreign keys" />;
  return <Table label="Foreign keys" rows={value} empty="No foreign key." columns={[
    ['Name', (row) => <span class="mono">{show(row.name)}</span>], ['Column', (row) => <span class="mono">{show(row.child)}.{show(row.c)}</span>],
    ['References', (row) => <a href={link(show(row.rs), show(row.rt))}>{show(row.rt)}.{show(row.rc)}</a>], ['On update', (row) => show(row.u)], ['On delete', (row) => show(row.d)],
  ]} />;
}

function Definition({ schema, table, turn }: { schema: string; table: string; turn: number }) {
  const { value, error } = useLoad(async () => show((await run(`SHOW CREATE TABLE ${full(schema, table)}`)).results[0].rows?.[0]?.[1]), [schema, table, turn]);
  return value === undefined ? (error ? <Failure error={error} /> : <Loading what="the definition" />) : <pre class="sql" tabIndex={0}>{value}</pre>;
}

function Sample({ schema, table, turn }: { schema: string; table: string; turn: number }) {
  const { value, error } = useLoad<Answer>(() => run(`SELECT * FROM ${full(schema, table)} LIMIT 100`), [schema, table, turn]);
  const result = value?.results[0];
  return !result ? (error ? <Failure error={error} /> : <Loading what="rows" />)
    : <div class="sample"><Grid columns={result.columns ?? []} rows={result.rows ?? []} version={1} filter="" within={-1} label={`Rows of ${table}`} /></div>;
}

function TableDetail({ schema, table, changed, turn }: { schema: string; table: string; changed: () => void; turn: number }) {
  const [part, setPart] = useState<Part>('Columns');
  const [dialog, setDialog] = useState<'alter' | 'drop' | null>(null);
  const about = useLoad(async () => (await selectIfThere('SELECT table_type AS type, engine, table_rows AS n, data_length AS data, index_length AS idx FROM information_schema.tables WHERE table_schema = ? AND table_name = ?', [schema, table]))[0], [schema, table, turn]);
  const row = about.value;
  const isTable = row?.type === 'BASE TABLE';
  const Body = { Columns, Indexes, 'Foreign keys': ForeignKeys, Definition, Sample }[part];
  const system = SYSTEM.includes(schema.toLowerCase());
  return (
    <div class="page">
      <header><h1><a href={link(schema)}>{schema}</a> . {table}</h1>{row && <span class="badge">{isTable ? show(row.engine) : show(row.type).toLowerCase()}</span>}<span class="spring" />
        <Button icon="query" label="Query" onClick={() => openQuery(`SELECT *\nFROM ${quoteName(table)}\nLIMIT 1000;`, schema)} />
        {!system && isTable && <Button label="Alter" onClick={() => setDialog('alter')} />}
        {!system && row && <Button label="Drop" kind="danger" onClick={() => setDialog('drop')} />}
      </header>
      {about.error ? <Failure error={errorText(about.error)} /> : null}
      {isTable && <div class="tiles">
        <div class="tile"><b>{Number(row.n ?? 0).toLocaleString()}</b><span>rows, estimated</span></div>
        <div class="tile"><b>{bytes(Number(row.data ?? 0))}</b><span>data</span></div>
        <div class="tile"><b>{bytes(Number(row.idx ?? 0))}</b><span>secondary indexes</span></div>
      </div>}
      <section class="card">
        <div class="tabs" role="tablist" aria-label="Parts of the table">{PARTS.map((name) => <button type="button" role="tab" key={name} aria-selected={name === part} onClick={() => setPart(name)}>{name}</button>)}</div>
        <Body schema={schema} table={table} turn={turn} />
      </section>
      {dialog === 'alter' && <AlterTable schema={schema} table={table} onClose={() => setDialog(null)} onDone={() => { setDialog(null); changed(); }} />}
      {dialog === 'drop' && <Dialog title={`Drop ${table}`} onClose={() => setDialog(null)}>
        <p>This deletes the {isTable ? 'table with all its rows' : 'view'}.</p>
        <SqlStep danger sql={`DROP ${isTable ? 'TABLE' : 'VIEW'} ${full(schema, table)}`} onDone={() => { setDialog(null); changed(); location.hash = link(schema); }} />
      </Dialog>}
    </div>
  );
}

export function Schema({ rest }: { rest: string[] }) {
  const [turn, setTurn] = useState(0);
  const [schema, table] = rest;
  const [creating, setCreating] = useState(false);
  const changed = () => { setTurn((count) => count + 1); void loadNames().catch(() => undefined); };
  return (
    <div class="split">
      <Side schema={schema} table={table} turn={turn} />
      <div class="detail">
        {table ? <TableDetail key={`${schema}/${table}`} schema={schema} table={table} changed={changed} turn={turn} />
          : schema ? <SchemaDetail key={schema} schema={schema} changed={changed} turn={turn} />
            : <div class="page"><header><h1>Schemas</h1><span class="spring" /><Button icon="plus" label="Create schema" kind="primary" onClick={() => setCreating(true)} /></header><p class="muted">Choose a schema from the list.</p></div>}
        {creating && <CreateSchema onClose={() => setCreating(false)} onDone={() => { setCreating(false); changed(); }} />}
      </div>
    </div>
  );
}
