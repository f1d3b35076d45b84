// Forms that write a definition statement; the statement is always shown before it runs.
import { useState } from 'preact/hooks';
import { quoteName, quoteText, select, show } from './api';
import { Effect } from './effect';
import { Button, Dialog, Field, SqlStep, useLoad } from './ui';

const TYPES = ['BIGINT', 'INT', 'SMALLINT', 'TINYINT', 'DECIMAL(12,2)', 'DOUBLE', 'VARCHAR(255)', 'TEXT', 'CHAR(36)', 'DATE', 'DATETIME', 'TIMESTAMP', 'JSON', 'BOOLEAN', 'BLOB'];

interface ColumnForm { name: string; type: string; required: boolean; primary: boolean; counts: boolean; dflt: string }
const EMPTY: ColumnForm = { name: '', type: 'VARCHAR(255)', required: false, primary: false, counts: false, dflt: '' };

/** A default as SQL: what is a number, a function or NULL stays as it is, all else is a text. */
const defaultSql = (text: string): string => (/^(-?\d+(\.\d+)?|NULL|CURRENT_TIMESTAMP(\(\d?\))?|TRUE|FALSE|\(.*\))$/i.test(text) ? text : quoteText(text));
const columnSql = (column: ColumnForm): string =>
  `${quoteName(column.name)} ${column.type}${column.required || column.primary ? ' NOT NULL' : ''}${column.counts ? ' AUTO_INCREMENT' : ''}${column.dflt ? ` DEFAULT ${defaultSql(column.dflt)}` : ''}`;

function ColumnLine({ column, at, onChange, onRemove }: { column: ColumnForm; at: number; onChange: (column: ColumnForm) => void; onRemove?: () => void }) {
  const label = (what: string) => `${what} of column ${at + 1}`;
  return (
    <div class="column-form">
      <input aria-label={label('Name')} placeholder="name" spellcheck={false} value={column.name} onInput={(event) => onChange({ ...column, name: event.currentTarget.value })} />
      <input aria-label={label('Type')} list="types" spellcheck={false} value={column.type} onInput={(event) => onChange({ ...column, type: event.currentTarget.value })} />
      <label><input type="checkbox" checked={column.primary} onChange={(event) => onChange({ ...column, primary: event.currentTarget.checked })} /> key</label>
      <label><input type="checkbox" checked={column.required} onChange={(event) => onChange({ ...column, required: event.currentTarget.checked })} /> not null</label>
      <label><input type="checkbox" checked={column.counts} onChange={(event) => onChange({ ...column, counts: event.currentTarget.checked })} /> auto</label>
      <input aria-label={label('Default')} placeholder="default" spellcheck={false} value={column.dflt} onInput={(event) => onChange({ ...column, dflt: event.currentTarget.value })} />
      {onRemove && <Button icon="close" label={`Remove column ${at + 1}`} hideLabel kind="quiet" onClick={onRemove} />}
    </div>
  );
}
const Types = () => <datalist id="types">{TYPES.map((name) => <option key={name} value={name} />)}</datalist>;

export function CreateSchema({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState('');
  return (
    <Dialog title="Create schema" onClose={onClose}>
      <Field label="Name"><input value={name} spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <SqlStep sql={name ? `CREATE DATABASE ${quoteName(name)}` : ''} onDone={onDone} />
    </Dialog>
  );
}

export function CreateTable({ schema, onClose, onDone }: { schema: string; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState('');
  const [columns, setColumns] = useState<ColumnForm[]>([{ ...EMPTY, name: 'id', type: 'BIGINT', required: true, primary: true, counts: true }, EMPTY]);
  const named = columns.filter((column) => column.name);
  const keys = named.filter((column) => column.primary).map((column) => quoteName(column.name));
  const lines = [...named.map(columnSql), ...(keys.length ? [`PRIMARY KEY (${keys.join(', ')})`] : [])];
  const sql = name && named.length ? `CREATE TABLE ${quoteName(schema)}.${quoteName(name)} (\n  ${lines.join(',\n  ')}\n)` : '';
  const set = (at: number, column: ColumnForm) => setColumns(columns.map((old, place) => (place === at ? column : old)));
  return (
    <Dialog title={`Create table in ${schema}`} onClose={onClose} wide>
      <Field label="Name"><input value={name} spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} /></Field>
      <Types />
      {columns.map((column, at) => <ColumnLine key={at} column={column} at={at} onChange={(next) => set(at, next)} onRemove={() => setColumns(columns.filter((_, place) => place !== at))} />)}
      <div class="bar"><Button icon="plus" label="Add column" onClick={() => setColumns([...columns, EMPTY])} /></div>
      <SqlStep sql={sql} onDone={onDone} />
    </Dialog>
  );
}

const CHANGES = ['Add column', 'Change column', 'Drop column', 'Add index', 'Drop index', 'Add foreign key', 'Rename table', 'Comment'] as const;

export function AlterTable({ schema, table, onClose, onDone }: { schema: string; table: string; onClose: () => void; onDone: () => void }) {
  const [change, setChange] = useState<typeof CHANGES[number]>('Add column');
  const [column, setColumn] = useState<ColumnForm>(EMPTY);
  const [old, setOld] = useState('');
  const [text, setText] = useState('');
  const [picked, setPicked] = useState<string[]>([]);
  const [unique, setUnique] = useState(false);
  const [target, setTarget] = useState({ table: '', column: '' });
  const known = useLoad(async () => ({
    columns: (await select('SELECT column_name AS n FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position', [schema, table])).map((row) => show(row.n)),
    indexes: [...new Set((await select('SELECT index_name AS n FROM information_schema.statistics WHERE table_schema = ? AND table_name = ?', [schema, table])).map((row) => show(row.n)))],
  }), [schema, table]);
  const columns = known.value?.columns ?? [];
  const step = (): string => {
    switch (change) {
      case 'Add column': return column.name ? `ADD COLUMN ${columnSql(column)}${column.primary ? ' PRIMARY KEY' : ''}` : '';
      case 'Change column': return old && column.name ? `CHANGE COLUMN ${quoteName(old)} ${columnSql(column)}` : '';
      case 'Drop column': return old ? `DROP COLUMN ${quoteName(old)}` : '';
      case 'Add index': return picked.length ? `ADD ${unique ? 'UNIQUE ' : ''}INDEX ${text ? `${quoteName(text)} ` : ''}(${picked.map(quoteName).join(', ')})` : '';
      case 'Drop index': return old ? (old === 'PRIMARY' ? 'DROP PRIMARY KEY' : `DROP INDEX ${quoteName(old)}`) : '';
      case 'Add foreign key': return old && target.table && target.column ? `ADD FOREIGN KEY (${quoteName(old)}) REFERENCES ${quoteName(target.table)} (${quoteName(target.column)})` : '';
      case 'Rename table': return text ? `RENAME TO ${quoteName(schema)}.${quoteName(text)}` : '';
      case 'Comment': return `COMMENT = ${quoteText(text)}`;
    }
  };
  const choose = (label: string, names: string[]) => (
    <Field label={label}><select value={old} onChange={(event) => { const name = event.currentTarget.value; setOld(name); setColumn({ ...column, name }); }}><option value="">choose</option>{names.map((name) => <option key={name}>{name}</option>)}</select></Field>
  );
  const sql = step();
  const statement = sql ? `ALTER TABLE ${quoteName(schema)}.${quoteName(table)} ${sql}` : '';
  return (
    <Dialog title={`Alter ${table}`} onClose={onClose} wide>
      <Types />
      <Field label="Change"><select value={change} onChange={(event) => { setChange(event.currentTarget.value as typeof change); setOld(''); setColumn(EMPTY); setText(''); }}>{CHANGES.map((name) => <option key={name}>{name}</option>)}</select></Field>
      {(change === 'Change column' || change === 'Drop column' || change === 'Add foreign key') && choose('Column', columns)}
      {(change === 'Add column' || change === 'Change column') && <ColumnLine column={column} at={0} onChange={setColumn} />}
      {change === 'Drop index' && choose('Index', known.value?.indexes ?? [])}
      {change === 'Add index' && <>
        <Field label="Name (may be empty)"><input value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
        <fieldset class="checks"><legend>Columns, in the order of the clicks</legend>{columns.map((name) => <label key={name}><input type="checkbox" checked={picked.includes(name)} onChange={(event) => setPicked(event.currentTarget.checked ? [...picked, name] : picked.filter((each) => each !== name))} />{name}</label>)}</fieldset>
        <label><input type="checkbox" checked={unique} onChange={(event) => setUnique(event.currentTarget.checked)} /> unique</label>
      </>}
      {change === 'Add foreign key' && <div class="form-grid">
        <Field label="Referenced table"><input value={target.table} onInput={(event) => setTarget({ ...target, table: event.currentTarget.value })} /></Field>
        <Field label="Referenced column"><input value={target.column} onInput={(event) => setTarget({ ...target, column: event.currentTarget.value })} /></Field>
      </div>}
      {(change === 'Rename table' || change === 'Comment') && <Field label={change === 'Comment' ? 'Comment' : 'New name'}><input value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>}
      {statement && <Effect sql={statement} schema={schema} />}
      <SqlStep schema={schema} sql={statement} danger={change.startsWith('Drop')} onDone={onDone} />
    </Dialog>
  );
}
