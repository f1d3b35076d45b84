// The page Live: what the server does now, and did in the last hour.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Advice } from './advice';
import { bytes, errorText, run, select, selectIfThere, show, type Item } from './api';
import { short } from './chart';
import { Locks } from './locks';
import { find, more, NONE, rate, type Everything } from './samples';
import { Digests } from './statements';
import { Transactions } from './transactions';
import { Trends } from './trends';
import { Waits } from './waits';
import { age, Button, Dialog, Failure, Loading, say, SqlStep, Table, useEvery, useLoad } from './ui';

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
    ['up', up === null ? null : age(up)],
  ];
  return <div class="tiles">{tiles.filter(([, value]) => value !== null).map(([label, value]) => <div class="tile" key={label}><b>{value}</b><span>{label}</span></div>)}</div>;
}

/** The process list, with how far long statements are. */
async function processes(): Promise<Item[]> {
  const [all, long] = await Promise.all([
    select("SELECT id, user, host, db, command, time, state, info FROM information_schema.processlist ORDER BY command = 'Sleep', time DESC"),
    selectIfThere('SELECT session_id AS id, work_done AS d, work_expected AS e FROM data_dictionary.SESSIONS WHERE work_expected > 0'),
  ]);
  const ahead = new Map(long.map((row) => [show(row.id), Math.min(99, Math.floor((100 * Number(row.d)) / Number(row.e)))]));
  return all.map((row) => ({ ...row, percent: ahead.get(show(row.id)) ?? null }));
}

function Processes({ turn, changed }: { turn: number; changed: () => void }) {
  const { value, error } = useLoad(processes, [turn]);
  const [ending, setEnding] = useState<Item | null>(null);
  if (!value) return error ? <Failure error={error} /> : <Loading what="processes" />;
  return <>
    <Failure error={error} />
    <Table label="Processes" rows={value} columns={[
      ['Id', (row) => show(row.id), 'numeric'], ['User', (row) => show(row.user)], ['From', (row) => show(row.host)], ['Schema', (row) => show(row.db ?? '')],
      ['State', (row) => (row.command === 'Sleep' ? 'idle' : show(row.state ?? row.command))], ['Seconds', (row) => show(row.time), 'numeric'],
      ['Done', (row) => (row.percent === null ? '' : <span class="bar nowrap"><progress max={100} value={Number(row.percent)} aria-label={`Share of the work of session ${show(row.id)}`} />{show(row.percent)} %</span>)],
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

function Work({ turn }: { turn: number }) {
  const { value } = useLoad(async () => ({
    recovery: await selectIfThere('SELECT phase, percent, eta_sec FROM data_dictionary.RECOVERY_PROGRESS'),
    indexes: await selectIfThere('SELECT table_name AS t, index_name AS i, rows_read AS r, entries_built AS e FROM data_dictionary.INDEX_BUILDS'),
    backups: await selectIfThere('SELECT state, pages_done AS d, pages_total AS t, bytes AS b, error AS e FROM data_dictionary.BACKUP_PROGRESS'),
    statements: await selectIfThere('SELECT session_id AS id, query AS q, work_done AS d, work_expected AS e FROM data_dictionary.SESSIONS WHERE work_expected > 0'),
    stages: await selectIfThere('SELECT event_name AS n, work_completed AS d, work_estimated AS t FROM performance_schema.events_stages_current WHERE work_estimated > 0'),
  }), [turn]);
  if (!value) return <Loading what="background work" />;
  const lines: [string, number, number, string][] = [
    ...value.recovery.map((row): [string, number, number, string] => ['Recovery', Number(row.percent), 100, show(row.phase)]),
    ...value.backups.map((row): [string, number, number, string] => ['Backup', Number(row.d), Number(row.t), row.e ? show(row.e) : `${show(row.state)}, ${bytes(Number(row.b))}`]),
    ...value.indexes.map((row): [string, number, number, string] => [`Index ${show(row.i)} of ${show(row.t)}`, Number(row.e), Math.max(Number(row.r), Number(row.e), 1), `${Number(row.e).toLocaleString()} entries of ${Number(row.r).toLocaleString()} rows read`]),
    ...value.statements.map((row): [string, number, number, string] => [`Statement of session ${show(row.id)}`, Math.min(Number(row.d), 0.99 * Number(row.e)), Number(row.e), `${Math.min(99, Math.floor((100 * Number(row.d)) / Number(row.e)))} % ${show(row.q ?? '').slice(0, 200)}`]),
    ...value.stages.map((row): [string, number, number, string] => [show(row.n), Number(row.d), Number(row.t), '']),
  ];
  return <Table label="Background work" rows={lines} empty="Nothing runs in the background." columns={[
    ['Work', ([name]) => name], ['Progress', ([name, done, total]) => <progress max={total || 1} value={done} aria-label={`Progress of ${name}`} />], ['State', ([, , , text]) => text],
  ]} />;
}

const SPANS: [string, number][] = [['2 min', 120], ['10 min', 600], ['1 h', 3600]];
const VIEWS = ['Charts', 'Advice', 'Processes', 'Transactions', 'Locks', 'Statements', 'Waits', 'Work'] as const;

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
  useEffect(() => document.querySelector('a.tab[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }), [view]);
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
        {samples.server.times.length === 0 && !error ? <Loading what="counters" /> : <Trends all={samples} span={span} />}
      </>}
      {view === 'Processes' && <section class="card"><h2>Processes</h2><Processes turn={turn} changed={changed} /></section>}
      {view === 'Transactions' && <section class="card"><h2>Open transactions</h2><Transactions turn={turn} changed={changed} /></section>}
      {view === 'Advice' && <section class="card"><h2>Advice</h2><Advice turn={turn} /></section>}
      {view === 'Locks' && <section class="card"><h2>Who waits for whom</h2><Locks turn={turn} changed={changed} /></section>}
      {view === 'Statements' && <section class="card"><h2>Statements by digest</h2><Digests turn={turn} /></section>}
      {view === 'Waits' && <Waits turn={turn} />}
      {view === 'Work' && <section class="card"><h2>Background work</h2><Work turn={turn} /></section>}
    </div>
  );
}
