// The transactions that run: how long, what they have locked and changed, and how to end them.
import { useState } from 'preact/hooks';
import { select, selectIfThere, show, type Item } from './api';
import { age, Button, Dialog, Failure, Loading, SqlStep, Table, useLoad } from './ui';

const OLD_SECONDS = 60;

export const transactions = (): Promise<Item[]> => select('SELECT trx_id AS id, trx_state AS state, trx_started AS started, TIMESTAMPDIFF(SECOND, trx_started, NOW()) AS age, trx_mysql_thread_id AS session, trx_query AS query, trx_rows_locked AS locked, trx_rows_modified AS modified, trx_tables_locked AS tables, trx_isolation_level AS isolation, trx_is_read_only AS ro FROM information_schema.innodb_trx ORDER BY trx_started');

async function load(): Promise<Item[]> {
  const [all, sessions] = await Promise.all([transactions(), selectIfThere('SELECT id, user, host, command FROM information_schema.processlist')]);
  const known = new Map(sessions.map((session) => [show(session.id), session]));
  return all.map((one) => ({ ...(known.get(show(one.session)) ?? {}), ...one }));
}

export function Transactions({ turn, changed }: { turn: number; changed: () => void }) {
  const { value, error } = useLoad(load, [turn]);
  const [ending, setEnding] = useState<Item | null>(null);
  if (!value) return error ? <Failure error={error} /> : <Loading what="transactions" />;
  const waits = (row: Item) => show(row.state) === 'LOCK WAIT';
  const state = (row: Item) => (waits(row) ? 'waits for a lock' : row.command === 'Sleep' ? 'idle' : 'running');
  return <>
    <Failure error={error} />
    <Table label="Transactions" rows={value} empty="No transaction is open." columns={[
      ['Session', (row) => show(row.session), 'numeric'], ['User', (row) => (row.user ? `${show(row.user)} from ${show(row.host)}` : '')],
      ['State', (row) => <span class={`badge ${waits(row) ? 'warn' : state(row) === 'running' ? 'on' : ''}`}>{state(row)}</span>],
      ['Age', (row) => <span class={Number(row.age) >= OLD_SECONDS ? 'old' : ''} title={`Since ${show(row.started)}`}>{age(Number(row.age))}</span>, 'numeric'],
      ['Rows locked', (row) => Number(row.locked).toLocaleString(), 'numeric'], ['Rows changed', (row) => Number(row.modified).toLocaleString(), 'numeric'],
      ['Isolation', (row) => `${show(row.isolation).toLowerCase()}${Number(row.ro) ? ', read only' : ''}`], ['Statement', (row) => <code>{show(row.query ?? '').slice(0, 300)}</code>],
      ['', (row) => <Button label="Kill" kind="danger" aria-label={`Kill session ${show(row.session)} and roll its transaction back`} onClick={() => setEnding(row)} />],
    ]} />
    {ending && <Dialog title={`Kill session ${show(ending.session)}`} onClose={() => setEnding(null)}>
      <p>{Number(ending.modified).toLocaleString()} changed rows are rolled back, and {Number(ending.locked).toLocaleString()} locks are released.</p>
      <SqlStep danger sql={`KILL ${Number(ending.session)}`} onDone={() => { setEnding(null); changed(); }} />
    </Dialog>}
  </>;
}
