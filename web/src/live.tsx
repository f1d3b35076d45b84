// The page Live: what the server does now, and did in the last hour.
import type { ComponentChildren } from 'preact';
import type uPlot from 'uplot';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { bytes, errorText, run, select, selectIfThere, show, type Item } from './api';
import { axis, Plot, seriesColour, short } from './chart';
import { Locks } from './locks';
import { openQuery } from './query';
import { find, more, NONE, rate, sourceOf, type Everything } from './samples';
import { theme } from './theme';
import { Button, Dialog, Failure, Loading, say, SqlStep, Table, useEvery, useLoad } from './ui';

type Line = [counter: string, label: string];
interface Picture { title: string; lines: Line[]; rates?: boolean; format?: (value: number) => string }

const micro = (value: number): string => (value >= 1000 ? `${+(value / 1000).toFixed(1)} ms` : `${value.toFixed(0)} µs`);
const PICTURES: Picture[] = [
  { title: 'Statements a second', rates: true, lines: [['com_select', 'SELECT'], ['com_insert', 'INSERT'], ['com_update', 'UPDATE'], ['com_delete', 'DELETE'], ['com_commit', 'COMMIT']] },
  { title: 'Connections', lines: [['threads_connected', 'open'], ['threads_running', 'running']] },
  { title: 'Latency of log writes', format: micro, lines: [['log_flush_p50_microseconds', 'median'], ['log_flush_p99_microseconds', '99 %']] },
  { title: 'Latency of page reads', format: micro, lines: [['pool_page_read_p50_microseconds', 'median'], ['pool_page_read_p99_microseconds', '99 %']] },
  { title: 'Lock waits', format: micro, lines: [['locks_wait_p50_microseconds', 'median'], ['locks_wait_p99_microseconds', '99 %']] },
  { title: 'Buffer pool, pages', lines: [['pool_pages_data', 'used'], ['pool_pages_dirty', 'changed']] },
  { title: 'Pages a second', rates: true, lines: [['pool_pages_read_total', 'read'], ['pool_pages_written_total', 'written']] },
  { title: 'Log written a second', rates: true, format: bytes, lines: [['log_written_bytes', 'bytes']] },
  { title: 'Purge', lines: [['purge_transactions_waiting_for_purge', 'waiting transactions'], ['transactions_active_writers', 'active writers']] },
  { title: 'Network a second', rates: true, format: bytes, lines: [['bytes_received', 'received'], ['bytes_sent', 'sent']] },
  { title: 'Memory of the server', format: bytes, lines: [['resident_bytes', 'resident']] },
  { title: 'Plan cache a second', rates: true, lines: [['plan_cache_hits', 'hits'], ['plan_cache_misses', 'misses']] },
  { title: 'Row operations a second', rates: true, lines: [['handler_read_key', 'by key'], ['handler_read_rnd_next', 'scanned'], ['handler_write', 'written'], ['handler_update', 'updated']] },
];
const SPANS: [string, number][] = [['2 min', 120], ['10 min', 600], ['1 h', 3600]];

function Trend({ picture, all, span }: { picture: Picture; all: Everything; span: number }) {
  const samples = picture.lines.map(([name]) => sourceOf(all, name)).find((source) => picture.lines.some(([name]) => find(source, name))) ?? all.server;
  const shade = theme.value;
  const there = picture.lines.map(([name, label]) => ({ label, values: find(samples, name) })).filter((line) => line.values);
  const labels = there.map((line) => line.label).join('|');
  const options = useMemo((): Omit<uPlot.Options, 'width' | 'height'> => ({
    cursor: { sync: { key: 'live' } },
    scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
    axes: [axis(), axis(picture.format ?? short, 70)],
    series: [{}, ...labels.split('|').map((label, at) => ({ label, stroke: seriesColour(at), width: 2, points: { show: false }, value: (_: uPlot, value: number | null) => (value === null || value === undefined ? '–' : (picture.format ?? short)(value)) }))],
  }), [picture, labels, shade]);
  const from = Math.max(0, samples.times.findIndex((time) => time >= (samples.times.at(-1) ?? 0) - span));
  const data = useMemo(() => [samples.times.slice(from), ...there.map((line) => (picture.rates ? rate(samples.times, line.values!) : line.values!).slice(from))] as uPlot.AlignedData, [samples, span, labels]);
  if (!there.length) return null;
  return <section class="card"><h3>{picture.title}</h3><Plot options={options} data={data} height={170} label={`${picture.title}, the last ${span} seconds`} /></section>;
}

const lastOf = (values: (number | null)[] | undefined): number | null => values?.at(-1) ?? null;

function Tiles({ all }: { all: Everything }) {
  const samples = all.server;
  const engine = all.engine;
  const questions = find(samples, 'questions') ?? find(samples, 'queries');
  const perSecond = questions ? rate(samples.times, questions) : undefined;
  const used = lastOf(find(engine, 'pool_pages_data'));
  const room = lastOf(find(engine, 'pool_pages_total'));
  const up = lastOf(find(samples, 'uptime'));
  const tiles: [string, string | null][] = [
    ['statements a second', perSecond ? short(lastOf(perSecond) ?? 0) : null],
    ['connections', lastOf(find(samples, 'threads_connected'))?.toLocaleString() ?? null],
    ['running now', lastOf(find(samples, 'threads_running'))?.toLocaleString() ?? null],
    ['buffer pool used', used !== null && room ? `${((100 * used) / room).toFixed(1)} %` : null],
    ['waiting for purge', lastOf(find(engine, 'purge_transactions_waiting_for_purge'))?.toLocaleString() ?? null],
    ['deadlocks', lastOf(find(engine, 'locks_deadlocks_total'))?.toLocaleString() ?? null],
    ['up', up === null ? null : up > 86_400 ? `${Math.floor(up / 86_400)} d` : up > 3600 ? `${Math.floor(up / 3600)} h` : `${Math.floor(up / 60)} min`],
  ];
  return <div class="tiles">{tiles.filter(([, value]) => value !== null).map(([label, value]) => <div class="tile" key={label}><b>{value}</b><span>{label}</span></div>)}</div>;
}

function Processes({ turn, changed }: { turn: number; changed: () => void }) {
  const { value, error } = useLoad(() => select('SELECT id, user, host, db, command, time, state, info FROM information_schema.processlist ORDER BY command = \'Sleep\', time DESC'), [turn]);
  const [ending, setEnding] = useState<Item | null>(null);
  if (!value) return error ? <Failure error={error} /> : <Loading what="processes" />;
  return <>
    <Failure error={error} />
    <Table label="Processes" rows={value} columns={[
      ['Id', (row) => show(row.id), 'numeric'], ['User', (row) => show(row.user)], ['From', (row) => show(row.host)], ['Schema', (row) => show(row.db ?? '')],
      ['State', (row) => (row.command === 'Sleep' ? 'idle' : show(row.state ?? row.command))], ['Seconds', (row) => show(row.time), 'numeric'],
      ['Statement', (row) => <code>{show(row.info ?? '').slice(0, 300)}</code>],
      ['', (row) => <span class="bar nowrap">
        {row.command !== 'Sleep' && <Button label="Stop" title="KILL QUERY: ends the statement" aria-label={`Stop the statement of session ${show(row.id)}`} onClick={() => run(`KILL QUERY ${Number(row.id)}`).then(() => { say('Stopped'); changed(); }, (failure) => say(errorText(failure)))} />}
        <Button label="Kill" kind="danger" aria-label={`Kill session ${show(row.id)}`} onClick={() => setEnding(row)} /></span>],
    ]} />
    {ending && <Dialog title={`Kill session ${show(ending.id)}`} onClose={() => setEnding(null)}>
      <p>{show(ending.user)} from {show(ending.host)}. Its transaction is rolled back.</p>
      <SqlStep danger sql={`KILL ${Number(ending.id)}`} onDone={() => { setEnding(null); changed(); }} />
    </Dialog>}
  </>;
}

const SPARK = 40;
function Spark({ values }: { values: number[] }) {
  if (values.length < 2) return null;
  const most = Math.max(...values, 1);
  const d = values.map((value, at) => `${at ? 'L' : 'M'}${(at * 90) / (SPARK - 1)} ${21 - (20 * value) / most}`).join('');
  return <svg class="spark" viewBox="0 0 90 22" aria-hidden="true"><path d={d} /></svg>;
}

function Digests({ turn }: { turn: number }) {
  const trends = useRef(new Map<string, { last: number; values: number[] }>());
  const { value, error } = useLoad(async () => {
    const rows = await selectIfThere('SELECT digest AS d, schema_name AS s, digest_text AS t, count_star AS n, sum_timer_wait AS total, avg_timer_wait AS mean, max_timer_wait AS most, sum_rows_sent AS sent, sum_errors AS errs, last_seen AS seen FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_timer_wait DESC, last_seen DESC LIMIT 50');
    for (const row of rows) {
      const key = `${show(row.s)} ${show(row.d)}`;
      const old = trends.current.get(key);
      const count = Number(row.n);
      trends.current.set(key, { last: count, values: old ? [...old.values, Math.max(0, count - old.last)].slice(-SPARK) : [] });
    }
    return rows;
  }, [turn]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="statements" />;
  const timed = value.some((row) => Number(row.n) > 0);
  const pico = (count: unknown) => micro(Number(count) / 1e6);
  return <>
    {!timed && value.length > 0 && <p class="muted">The server lists its statements and does not time them yet.</p>}
    <Table label="Statements by digest" rows={value} empty="No statement yet." columns={[
      ['Statement', (row) => <button type="button" class="as-text" onClick={() => openQuery(show(row.t), show(row.s ?? ''))}><code>{show(row.t).slice(0, 240)}</code></button>], ['Schema', (row) => show(row.s ?? '')],
      ...(timed ? [
        ['Runs', (row: Item) => Number(row.n).toLocaleString(), 'numeric'], ['Total', (row: Item) => pico(row.total), 'numeric'], ['Mean', (row: Item) => pico(row.mean), 'numeric'], ['Slowest', (row: Item) => pico(row.most), 'numeric'],
        ['Rows', (row: Item) => Number(row.sent).toLocaleString(), 'numeric'], ['Trend', (row: Item) => <Spark values={trends.current.get(`${show(row.s)} ${show(row.d)}`)?.values ?? []} />],
      ] as [string, (row: Item) => ComponentChildren, 'numeric'?][] : []),
      ['Last seen', (row) => show(row.seen).slice(0, 19)],
    ]} />
  </>;
}

function Work({ turn }: { turn: number }) {
  const { value } = useLoad(async () => ({
    recovery: await selectIfThere('SELECT phase, percent, eta_sec FROM data_dictionary.RECOVERY_PROGRESS'),
    indexes: await selectIfThere('SELECT table_name AS t, index_name AS i, rows_read AS r, entries_built AS e FROM data_dictionary.INDEX_BUILDS'),
    backups: await selectIfThere('SELECT state, pages_done AS d, pages_total AS t, bytes AS b, error AS e FROM data_dictionary.BACKUP_PROGRESS'),
    stages: await selectIfThere('SELECT event_name AS n, work_completed AS d, work_estimated AS t FROM performance_schema.events_stages_current WHERE work_estimated > 0'),
  }), [turn]);
  if (!value) return <Loading what="background work" />;
  const lines: [string, number, number, string][] = [
    ...value.recovery.map((row): [string, number, number, string] => ['Recovery', Number(row.percent), 100, show(row.phase)]),
    ...value.backups.map((row): [string, number, number, string] => ['Backup', Number(row.d), Number(row.t), row.e ? show(row.e) : `${show(row.state)}, ${bytes(Number(row.b))}`]),
    ...value.indexes.map((row): [string, number, number, string] => [`Index ${show(row.i)} of ${show(row.t)}`, Number(row.e), Math.max(Number(row.r), Number(row.e), 1), `${Number(row.e).toLocaleString()} entries of ${Number(row.r).toLocaleString()} rows read`]),
    ...value.stages.map((row): [string, number, number, string] => [show(row.n), Number(row.d), Number(row.t), '']),
  ];
  return <Table label="Background work" rows={lines} empty="Nothing runs in the background." columns={[
    ['Work', ([name]) => name], ['Progress', ([name, done, total]) => <progress max={total || 1} value={done} aria-label={`Progress of ${name}`} />], ['State', ([, , , text]) => text],
  ]} />;
}

const VIEWS = ['Charts', 'Processes', 'Locks', 'Statements', 'Work'] as const;

export function Live({ rest }: { rest: string[] }) {
  const [samples, setSamples] = useState<Everything>(NONE);
  const [error, setError] = useState<unknown>();
  const [span, setSpan] = useState(600);
  const [turn, setTurn] = useState(0);
  const state = useRef(samples);
  const busy = useRef(false);
  const view = VIEWS.find((name) => name.toLowerCase() === rest[0]) ?? 'Charts';
  const load = async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      state.current = await more(state.current);
      setSamples(state.current);
      setError(undefined);
    } catch (failure) { setError(failure); } finally { busy.current = false; }
  };
  useEffect(() => { void load(); }, []);
  useEvery(2000, () => { if (view === 'Charts') void load(); setTurn((count) => count + 1); }, [view]);
  const changed = () => setTurn((count) => count + 1);
  return (
    <div class="page">
      <header><h1>Live</h1>
        <div class="tabs">{VIEWS.map((name) => <a class="tab" key={name} href={`#/live/${name.toLowerCase()}`} aria-current={name === view ? 'page' : undefined}>{name}</a>)}</div>
        <span class="spring" />
        {view === 'Charts' && <div class="segments" role="group" aria-label="Time span">{SPANS.map(([label, seconds]) => <Button key={label} label={label} aria-pressed={span === seconds} onClick={() => setSpan(seconds)} />)}</div>}
      </header>
      <Failure error={error} />
      {view === 'Charts' && <>
        <Tiles all={samples} />
        {!samples.server.kept && <p class="muted">The server keeps no history: the charts start when this page is opened.</p>}
        {samples.server.times.length === 0 && !error ? <Loading what="counters" /> : <div class="plots">{PICTURES.map((picture) => <Trend key={picture.title} picture={picture} all={samples} span={span} />)}</div>}
      </>}
      {view === 'Processes' && <section class="card"><h2>Processes</h2><Processes turn={turn} changed={changed} /></section>}
      {view === 'Locks' && <section class="card"><h2>Who waits for whom</h2><Locks turn={turn} changed={changed} /></section>}
      {view === 'Statements' && <section class="card"><h2>Statements by digest</h2><Digests turn={turn} /></section>}
      {view === 'Work' && <section class="card"><h2>Background work</h2><Work turn={turn} /></section>}
    </div>
  );
}
