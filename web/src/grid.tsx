// A table of any number of rows: only the rows in sight are in the document.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isNumber, show, type Column, type Row } from './api';
import { arrange, arrangeInSlices, type Order } from './arrange';
import { Dialog, say } from './ui';

const ROW = 28;
/** Browsers stop at about 17 million pixels; a taller table maps the scroll bar onto its rows. */
const TALLEST = 15_000_000;
/** Cells that are filtered and sorted at once; more of them in slices. */
const AT_ONCE = 100_000;

function widths(columns: Column[], rows: Row[]): number[] {
  return columns.map((column, at) => {
    let most = column.name.length + 3;
    for (const row of rows.slice(0, 100)) most = Math.max(most, Math.min(show(row[at]).length, 60));
    return Math.min(420, Math.max(64, Math.round(most * 7.7) + 24));
  });
}

interface Props {
  columns: Column[]; rows: Row[]; version: number; filter: string; within: number; label: string;
  /** Gets the numbers of the rows shown, in order; null: all as they came. */
  onShown?: (shown: Uint32Array | null) => void;
}

/** The rows to show, null for all as they came, and whether a newer choice is still being worked on. */
function useArranged({ columns, rows, version, filter, within }: Props, order: Order | null): [Uint32Array | null, boolean] {
  const isAll = filter === '' && !order;
  const isSmall = rows.length * columns.length <= AT_ONCE;
  const atOnce = useMemo(() => (isAll || !isSmall ? null : arrange(rows, columns, { filter, within, order })), [rows, columns, version, filter, within, order]);
  const [slow, setSlow] = useState<{ shown: Uint32Array | null; busy: boolean } | null>(null);
  useEffect(() => {
    if (isAll || isSmall) { setSlow(null); return undefined; }
    let isCurrent = true;
    setSlow((old) => ({ shown: old?.shown ?? null, busy: true }));
    void arrangeInSlices(rows, columns, { filter, within, order }, () => isCurrent).then((shown) => { if (shown) setSlow({ shown, busy: false }); });
    return () => { isCurrent = false; };
  }, [rows, columns, isSmall ? 0 : version, filter, within, order]);
  if (isAll) return [null, false];
  return isSmall ? [atOnce, false] : [slow?.shown ?? null, slow?.busy ?? true];
}

export function Grid(props: Props) {
  const { columns, rows, version, label } = props;
  const box = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useState<Order | null>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [cell, setCell] = useState<[number, number]>([0, 0]);
  const [open, setOpen] = useState(false);
  const [shown, isBusy] = useArranged(props, order);
  useEffect(() => props.onShown?.(shown), [shown]);
  const sizes = useMemo(() => widths(columns, rows), [columns, rows, version > 0]);
  const total = shown ? shown.length : rows.length;
  const rowAt = (at: number): Row | undefined => rows[shown ? shown[at] : at];
  const full = total * ROW;
  const tall = Math.min(full, TALLEST);
  const room = Math.max(ROW, height - ROW);
  const span = Math.max(1, tall - room);
  const fraction = full > tall ? Math.min(1, top / span) : 0;
  // Without scaling, the first row is where the scroll bar says; with it, the bar's fraction of the rows.
  const first = Math.max(0, Math.min(total - 1, Math.floor((full > tall ? fraction * (full - room) : top) / ROW)));
  const last = Math.min(total, first + Math.ceil(room / ROW) + 2);

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => { setOrder(null); setCell([0, 0]); if (box.current) box.current.scrollTop = 0; }, [columns]);

  const reveal = (row: number) => {
    const element = box.current;
    if (!element || (row >= first && row < last - 2)) return;
    const want = row < first ? row * ROW : (row + 1) * ROW - room;
    element.scrollTop = full > tall ? (want / (full - room)) * span : want;
  };
  const move = (row: number, column: number) => {
    const next: [number, number] = [Math.max(0, Math.min(total - 1, row)), Math.max(0, Math.min(columns.length - 1, column))];
    setCell(next);
    reveal(next[0]);
    const element = box.current;
    if (!element) return;
    const left = 56 + sizes.slice(0, next[1]).reduce((sum, size) => sum + size, 0);
    if (left - 56 < element.scrollLeft) element.scrollLeft = left - 56;
    else if (left + sizes[next[1]] > element.scrollLeft + element.clientWidth) element.scrollLeft = left + sizes[next[1]] - element.clientWidth;
  };
  const value = rowAt(cell[0])?.[cell[1]];
  const sortBy = (column: number) => setOrder((old) => (old?.column !== column ? { column, descending: false } : old.descending ? null : { column, descending: true }));
  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(room / ROW) - 1);
    const [row, column] = cell;
    const steps: Record<string, [number, number]> = {
      ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageDown: [row + page, column], PageUp: [row - page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0], End: event.ctrlKey ? [total - 1, columns.length - 1] : [row, columns.length - 1],
    };
    const step = steps[event.key];
    if (step) { event.preventDefault(); move(...step); return; }
    if (event.key === 'Enter' && total) { event.preventDefault(); setOpen(true); }
    if (event.key === 's' && !event.ctrlKey && !event.metaKey && !event.altKey) sortBy(column);
    if (event.key === 'c' && (event.ctrlKey || event.metaKey) && total && String(getSelection()) === '') {
      navigator.clipboard?.writeText(show(value)).then(() => say('Copied'), () => say('The browser refused the clipboard'));
    }
  };
  const template = `56px ${sizes.map((size) => `${size}px`).join(' ')}`;
  const wide = 56 + sizes.reduce((sum, size) => sum + size, 0);
  const lines = [];
  for (let at = first; at < last; at += 1) {
    const row = rowAt(at);
    if (!row) continue;
    const y = full > tall ? top + (at - first) * ROW : at * ROW;
    lines.push(
      <div class={`line ${at % 2 ? 'odd' : ''}`} role="row" aria-rowindex={at + 2} key={at} style={{ top: `${y}px`, gridTemplateColumns: template, width: `${wide}px` }}>
        <div class="number" role="rowheader">{at + 1}</div>
        {columns.map((column, c) => (
          <div id={`cell-${at}-${c}`} role="gridcell" key={c} onClick={() => setCell([at, c])} onDblClick={() => setOpen(true)}
            class={`cell ${isNumber(column) ? 'numeric' : ''} ${row[c] === null ? 'null' : ''} ${cell[0] === at && cell[1] === c ? 'current' : ''}`}>
            {show(row[c]).slice(0, 300)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <>
    {isBusy && <p class="arranging muted" role="status">Arranging {rows.length.toLocaleString()} rows…</p>}
    <div class="grid-box" ref={box} role="grid" aria-busy={isBusy} tabIndex={0} aria-label={label} aria-rowcount={total + 1} aria-colcount={columns.length + 1}
      aria-activedescendant={total ? `cell-${cell[0]}-${cell[1]}` : undefined} onKeyDown={key} onScroll={(event) => setTop((event.currentTarget as HTMLElement).scrollTop)}>
      <div class="head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, width: `${wide}px` }}>
        <div class="number" role="columnheader">#</div>
        {columns.map((column, at) => (
          <div key={at} role="columnheader" class={isNumber(column) ? 'numeric' : ''} aria-sort={order?.column === at ? (order.descending ? 'descending' : 'ascending') : 'none'}
            title={`${column.name}: ${column.type}${column.unsigned ? ' unsigned' : ''}. Click, or press s in the column, to sort`} onClick={() => sortBy(at)}>
            <span>{column.name}</span>{order?.column === at && <b aria-hidden="true">{order.descending ? '▼' : '▲'}</b>}
          </div>
        ))}
      </div>
      <div class="body" role="rowgroup" style={{ height: `${tall}px`, width: `${wide}px` }}>{lines}</div>
      {open && <Dialog title={columns[cell[1]].name} onClose={() => setOpen(false)} wide><pre class="sql" tabIndex={0}>{pretty(value)}</pre></Dialog>}
    </div>
    </>
  );
}

const pretty = (value: Row[number] | undefined): string => (typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : show(value));
