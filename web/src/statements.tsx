// Statements by digest: how often each ran, where the time went, and how that changes.
import { useRef, useState } from 'preact/hooks';
import { selectIfThere, show, type Item } from './api';
import { openQuery } from './query';
import { micro } from './trends';
import { Bar, Button, Dialog, Failure, Field, Loading, SqlStep, useLoad } from './ui';

const SPARK = 40;
function Spark({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return null;
  const most = Math.max(...values, 1);
  const d = values.map((value, at) => `${at ? 'L' : 'M'}${((at + SPARK - values.length) * 90) / (SPARK - 1)} ${21 - (20 * value) / most}`).join('');
  return <svg class="spark" viewBox="0 0 90 22" role="img" aria-label={label}><path d={d} /></svg>;
}

const ORDERS: [key: string, label: string][] = [['total', 'time in all'], ['mean', 'mean time'], ['n', 'runs'], ['cpu', 'processor time'], ['examined', 'rows read'], ['errs', 'errors']];
const SQL = 'SELECT digest AS d, schema_name AS s, digest_text AS t, count_star AS n, sum_timer_wait AS total, avg_timer_wait AS mean, max_timer_wait AS most, quantile_95 AS p95, quantile_99 AS p99, sum_cpu_time AS cpu, sum_lock_time AS locked, '
  + 'sum_rows_sent AS sent, sum_rows_examined AS examined, sum_rows_affected AS changed, sum_errors AS errs, sum_warnings AS warned, sum_no_index_used AS unindexed, sum_created_tmp_disk_tables AS disk, first_seen AS first, last_seen AS seen, query_sample_text AS sample FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_timer_wait DESC, last_seen DESC LIMIT 200';

const START = "UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name = 'statements_digest'";

const pico = (value: Item[string]): string => micro(Number(value ?? 0) / 1e6);
const whole = (value: Item[string]): string => Number(value ?? 0).toLocaleString();
const keyOf = (row: Item): string => `${show(row.s)} ${show(row.d ?? row.t)}`;

function Details({ row, onClose }: { row: Item; onClose: () => void }) {
  const runs = Math.max(1, Number(row.n));
  const sample = row.sample === null ? show(row.t) : show(row.sample);
  return (
    <Dialog title="Statement" onClose={onClose} wide>
      <pre class="sql" tabIndex={0}>{show(row.t)}</pre>
      <dl class="facts">
        <dt>Runs</dt><dd>{whole(row.n)}, from {show(row.first).slice(0, 19)} to {show(row.seen).slice(0, 19)}</dd>
        <dt>Time</dt><dd>{pico(row.total)} in all, {pico(row.mean)} on average, {pico(row.p95)} for 95 %, {pico(row.p99)} for 99 %, {pico(row.most)} at most</dd>
        <dt>Of that</dt><dd>{pico(row.cpu)} on a processor, {pico(row.locked)} waiting for locks</dd>
        <dt>Rows</dt><dd>{whole(row.examined)} read, {whole(row.sent)} returned, {whole(row.changed)} changed: {(Number(row.examined) / runs).toFixed(1)} read each time</dd>
        <dt>Without an index</dt><dd>{whole(row.unindexed)} of the runs</dd>
        <dt>Temporary tables on disk</dt><dd>{whole(row.disk)}</dd>
        <dt>Errors and warnings</dt><dd>{whole(row.errs)}, {whole(row.warned)}</dd>
      </dl>
      <div class="actions"><Button icon="query" label="Open in a query" kind="primary" onClick={() => openQuery(sample, show(row.s ?? ''))} /></div>
    </Dialog>
  );
}

export function Digests({ turn }: { turn: number }) {
  const trends = useRef(new Map<string, { last: number; values: number[] }>());
  const [order, setOrder] = useState('total');
  const [open, setOpen] = useState<Item | null>(null);
  const [filter, setFilter] = useState('');
  const { value, error } = useLoad(async () => {
    const rows = await selectIfThere(SQL);
    for (const row of rows) {
      const old = trends.current.get(keyOf(row));
      const count = Number(row.n);
      trends.current.set(keyOf(row), { last: count, values: old ? [...old.values, Math.max(0, count - old.last)].slice(-SPARK) : [] });
    }
    return rows;
  }, [turn]);
  const isOff = useLoad(async () => (await selectIfThere("SELECT 1 FROM performance_schema.setup_consumers WHERE name = 'statements_digest' AND enabled = 'NO'")).length > 0, [Math.floor(turn / 5)]);
  const [starting, setStarting] = useState(false);
  if (!value) return error ? <Failure error={error} /> : <Loading what="statements" />;
  const isTimed = value.some((row) => Number(row.total) > 0);
  const all = Math.max(1, value.reduce((sum, row) => sum + Number(row.total), 0));
  const rows = value.filter((row) => show(row.t).toLowerCase().includes(filter.toLowerCase())).sort((a, b) => Number(b[order]) - Number(a[order])).slice(0, 60);
  return <>
    <div class="bar digests-bar">
      <input type="search" aria-label="Filter statements" placeholder="Filter statements" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      <Field label="By"><select value={order} onChange={(event) => setOrder(event.currentTarget.value)}>{ORDERS.map(([key, label]) => <option key={key} value={key}>{label}</option>)}</select></Field>
    </div>
    {!isTimed && rows.length > 0 && <p class="muted">The server lists its statements and does not time them.</p>}
    {isOff.value && <div class="actions"><Button label="Begin to time statements" onClick={() => setStarting(true)} /></div>}
    {starting && <Dialog title="Begin to time statements" onClose={() => setStarting(false)}><p>Each statement is then counted and timed by its digest, until the server stops.</p><SqlStep sql={START} onDone={() => { setStarting(false); isOff.again(); }} /></Dialog>}
    {!rows.length && <p class="muted">No statement yet.</p>}
    <ul class="digests" aria-label="Statements by digest">{rows.map((row) => (
      <li key={keyOf(row)}><button type="button" onClick={() => setOpen(row)}>
        <code>{show(row.t).slice(0, 400)}</code>
        <span class="share">{isTimed && <><Bar share={Number(row.total) / all} />{((100 * Number(row.total)) / all).toFixed(0)} %</>}</span>
        <span class="numbers">{isTimed && <>
          <span><b>{whole(row.n)}</b> runs</span><span><b>{pico(row.total)}</b> in all</span><span><b>{pico(row.mean)}</b> mean</span><span><b>{pico(row.p95)}</b> 95 %</span>
          <span><b>{whole(row.examined)}</b> read</span><span><b>{whole(row.sent)}</b> returned</span></>}
          {Number(row.errs) > 0 && <span class="bad"><b>{whole(row.errs)}</b> errors</span>}{Number(row.unindexed) > 0 && <span class="badge warn">no index</span>}
          {row.s !== null && <span class="badge">{show(row.s)}</span>}
        </span>
        <Spark values={trends.current.get(keyOf(row))?.values ?? []} label="Runs over time" />
      </button></li>
    ))}</ul>
    {open && <Details row={open} onClose={() => setOpen(null)} />}
  </>;
}
