// Small parts that all pages use.
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { errorText, run } from './api';

const PATHS: Record<string, string> = {
  query: 'M4 6l5 6-5 6M12 18h8', schema: 'M4 5h16v5H4zM4 14h7v5H4zM15 14h5v5h-5zM12 10v2M7.500 12v2M17.500 12v2M7.500 12h10',
  live: 'M3 13h4l3-8 4 14 3-6h4', settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4.500v5M8 14.500v5', users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c1-4 4-6 8-6s7 2 8 6',
  plugins: 'M9 3v5M15 3v5M6 8h12v4a6 6 0 0 1-12 0zM12 18v3', play: 'M7 5l12 7-12 7z', stop: 'M6 6h12v12H6z', plus: 'M12 5v14M5 12h14', close: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2', moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  out: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4', table: 'M4 5h16v14H4zM4 10h16M10 10v9', chart: 'M4 20V4M4 20h16M8 16v-5M12 16V8M16 16v-3', plan: 'M9 3h6v5H9zM3 16h6v5H3zM15 16h6v5h-6zM12 8v4M6 16v-4h12v4',
  flame: 'M12 3c1 4 5 6 5 11a5 5 0 0 1-10 0c0-3 2-4 2-6 2 1 3 3 3 5 1-3 1-6 0-10z',
  docs: 'M12 6c-2-2-5-2-8-2v14c3 0 6 0 8 2 2-2 5-2 8-2V4c-3 0-6 0-8 2zM12 6v14',
  page: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 4v7h-7', down: 'M12 4v11M7 11l5 5 5-5M5 20h14', history: 'M12 7v5l4 2M4 12a8 8 0 1 0 3-6.200L4 8M4 4v4h4', view: 'M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
};

export function Icon({ name }: { name: string }) {
  return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={PATHS[name]} /></svg>;
}

export function Button(props: { icon?: string; label: string; hideLabel?: boolean; kind?: string } & ButtonHTMLAttributes) {
  const { icon, label, hideLabel, kind, ...rest } = props;
  return (
    <button type="button" {...rest} class={`button ${kind ?? ''}`} aria-label={hideLabel ? label : rest['aria-label']} title={hideLabel ? label : rest.title}>
      {icon && <Icon name={icon} />}{!hideLabel && <span>{label}</span>}
    </button>
  );
}

const note = signal('');
let timer = 0;
/** Says something for some seconds, also to screen readers. */
export function say(text: string): void {
  note.value = text;
  clearTimeout(timer);
  timer = window.setTimeout(() => { note.value = ''; }, 3500);
}
export const Note = () => <div class={`note ${note.value ? 'shown' : ''}`} role="status">{note.value}</div>;

export function Failure({ error }: { error: unknown }) {
  return error ? <div class="failure" role="alert">{errorText(error)}</div> : null;
}

export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-label={title} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <header><h2>{title}</h2><Button icon="close" label="Close" hideLabel kind="quiet" onClick={onClose} /></header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

/** Shows a statement and runs it after a click. `secret` is replaced by dots in what is shown. */
export function SqlStep({ sql, schema, secret, onDone, danger }: { sql: string; schema?: string; secret?: string; onDone: () => void; danger?: boolean }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => setError(undefined), [sql]);
  const go = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await run(sql, { schema });
      say('Done');
      onDone();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="sql-step">
      <pre class="sql" tabIndex={0} aria-label="SQL that will run">{sql === '' ? 'Nothing to change' : secret ? sql.replaceAll(secret, "'••••••'") : sql}</pre>
      <Failure error={error} />
      <div class="actions"><Button label={busy ? 'Running…' : 'Run this SQL'} icon="play" kind={danger ? 'danger' : 'primary'} disabled={busy || sql === ''} onClick={go} /></div>
    </div>
  );
}

export function Field({ label, children, hint }: { label: string; children: ComponentChildren; hint?: string }) {
  return <label class="field"><span>{label}</span>{children}{hint && <small>{hint}</small>}</label>;
}

/** A share as a bar; what it says stands beside it as text. */
export const Bar = ({ share, tone }: { share: number; tone?: string }) => <span class={`share-bar ${tone ?? ''}`} aria-hidden="true"><i style={{ width: `${Math.min(100, Math.max(0, 100 * share))}%` }} /></span>;

/** Seconds as people say them. */
export const age = (seconds: number): string => (seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.floor(seconds / 60)} min` : seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`);

export function Loading({ what }: { what: string }) {
  return <p class="loading" role="status">Loading {what}…</p>;
}

/** Runs `load` now and whenever one of `inputs` changes; gives the value, the error and a way to load again. */
export function useLoad<T>(load: () => Promise<T>, inputs: unknown[]): { value?: T; error?: unknown; again: () => void } {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    load().then((value) => current && setState({ value }), (error) => current && setState((old) => ({ value: old.value, error })));
    return () => { current = false; };
  }, [...inputs, turn]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

/** Calls `tick` every `milliseconds` while the page is visible. */
export function useEvery(milliseconds: number, tick: () => void, inputs: unknown[] = []): void {
  useEffect(() => {
    const id = window.setInterval(() => { if (!document.hidden) tick(); }, milliseconds);
    return () => clearInterval(id);
  }, inputs);
}

/** A plain table for at most some hundreds of rows. */
export function Table<T>({ label, rows, columns, empty }: {
  label: string; rows: T[]; columns: [string, (row: T) => ComponentChildren, 'numeric'?][]; empty?: string;
}) {
  if (!rows.length) return <p class="muted">{empty ?? 'None'}</p>;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={label}>
      <table class={`plain ${columns.length > 3 ? 'folds' : ''}`}>
        <thead><tr>{columns.map(([name, , numeric]) => <th key={name} scope="col" class={numeric ?? ''}>{name}</th>)}</tr></thead>
        <tbody>{rows.map((row, at) => <tr key={at}>{columns.map(([name, cell, numeric]) => <td key={name} class={numeric ?? ''} data-label={name}>{cell(row)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
