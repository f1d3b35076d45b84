// Charts of a result: lines, bars and points with uPlot, a pie as SVG.
import uPlot from 'uplot';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { isNumber, isTime, show, type Column, type Row } from './api';
import { theme } from './theme';
import { Field } from './ui';

const SERIES = 8;
/** More points than a screen has pixels make a chart slow and no clearer. */
const POINTS = 50_000;
const SLICES = 12;

export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const seriesColour = (at: number): string => colour(`--series-${(at % SERIES) + 1}`);

interface PlotProps { options: Omit<uPlot.Options, 'width' | 'height'>; data: uPlot.AlignedData; height: number; label: string }

/** A uPlot that follows the width of its place and the colours of the theme. */
export function Plot({ options, data, height, label }: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shade = theme.value;
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const created = new uPlot({ ...options, width: Math.max(200, element.clientWidth), height }, data, element);
    plot.current = created;
    const watch = new ResizeObserver(() => created.setSize({ width: Math.max(200, element.clientWidth), height }));
    watch.observe(element);
    return () => { watch.disconnect(); created.destroy(); plot.current = null; };
  }, [options, height, shade]);
  useEffect(() => { if (plot.current && plot.current.data !== data) plot.current.setData(data); }, [data]);
  return <div class="plot" ref={host} role="img" aria-label={label} />;
}

export function axis(format?: (value: number) => string, size?: number): uPlot.Axis {
  const ink = colour('--muted');
  const line = { stroke: colour('--hair'), width: 1 };
  return { stroke: ink, font: '12px system-ui, sans-serif', grid: line, ticks: line, ...(size ? { size } : {}), ...(format ? { values: (_: uPlot, all: number[]) => all.map(format) } : {}) };
}

export const short = (value: number): string => {
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toFixed(1)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)}k`;
  return String(+value.toFixed(size < 1 ? 3 : 2));
};

type Kind = 'line' | 'bar' | 'scatter' | 'pie';

function guess(columns: Column[]): { kind: Kind; x: number; ys: number[] } {
  const time = columns.findIndex(isTime);
  const word = columns.findIndex((column) => !isNumber(column) && !isTime(column));
  const x = time >= 0 ? time : word >= 0 ? word : 0;
  const ys = columns.map((_, at) => at).filter((at) => at !== x && isNumber(columns[at])).slice(0, 4);
  return { kind: time >= 0 ? 'line' : word >= 0 ? 'bar' : 'line', x, ys: ys.length ? ys : [Math.min(x + 1, columns.length - 1)] };
}

const seconds = (value: Row[number]): number | null => {
  const at = typeof value === 'string' ? Date.parse(value.replace(' ', 'T')) : NaN;
  return Number.isNaN(at) ? null : at / 1000;
};

function Pie({ names, values, label }: { names: string[]; values: number[]; label: string }) {
  const order = values.map((value, at) => ({ value, name: names[at] })).filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const slices = order.slice(0, SLICES);
  const rest = order.slice(SLICES).reduce((sum, { value }) => sum + value, 0);
  if (rest > 0) slices.push({ value: rest, name: `${order.length - SLICES} others` });
  const total = slices.reduce((sum, { value }) => sum + value, 0);
  let turned = 0;
  return (
    <div class="pie">
      <svg viewBox="-1.1 -1.1 2.2 2.2" role="img" aria-label={label}>
        {slices.map(({ value, name }, at) => {
          const from = (turned / total) * 2 * Math.PI;
          turned += value;
          const to = (turned / total) * 2 * Math.PI;
          const point = (angle: number) => `${Math.sin(angle)} ${-Math.cos(angle)}`;
          const d = slices.length === 1 ? 'M0 -1A1 1 0 1 1 -0.001 -1Z' : `M0 0L${point(from)}A1 1 0 ${to - from > Math.PI ? 1 : 0} 1 ${point(to)}Z`;
          return <path key={at} d={d} class={`slice series-${(at % SERIES) + 1}`}><title>{`${name}: ${value}`}</title></path>;
        })}
      </svg>
      <ul class="legend">
        {slices.map(({ value, name }, at) => <li key={at}><i class={`swatch series-${(at % SERIES) + 1}`} />{name}<b>{short(value)}</b><span>{((100 * value) / total).toFixed(1)} %</span></li>)}
      </ul>
    </div>
  );
}

export function Chart({ columns, rows, version }: { columns: Column[]; rows: Row[]; version: number }) {
  const [choice, setChoice] = useState(() => guess(columns));
  useEffect(() => setChoice(guess(columns)), [columns]);
  const { kind, x, ys } = choice;
  const shade = theme.value;
  const used = rows.length > POINTS ? rows.slice(0, POINTS) : rows;
  const drawn = useMemo(() => {
    const temporal = columns[x] && isTime(columns[x]);
    const numeric = columns[x] && isNumber(columns[x]);
    const place = (row: Row, at: number) => (temporal ? seconds(row[x]) : numeric ? Number(row[x]) : at);
    let order = used.map((row, at) => ({ row, at: place(row, at) })).filter((item) => item.at !== null) as { row: Row; at: number }[];
    if (kind !== 'pie') order = order.sort((a, b) => a.at - b.at);
    const data = [order.map(({ at }) => at), ...ys.map((y) => order.map(({ row }) => (row[y] === null || row[y] === undefined ? null : Number(row[y]))))] as uPlot.AlignedData;
    const names = order.map(({ row }) => show(row[x]));
    const xs = order.map(({ at }) => at);
    const step = xs.reduce((least, value, at) => (at && value > xs[at - 1] ? Math.min(least, value - xs[at - 1]) : least), Infinity);
    const width = ((Number.isFinite(step) ? step : 1) * 0.8) / ys.length;
    // Bars of several series stand side by side.
    const bars = (at: number) => (kind === 'bar' ? uPlot.paths.bars?.({ disp: {
      x0: { unit: 1, values: (u: uPlot) => Array.from(u.data[0], (value) => value + (at - ys.length / 2) * width) },
      size: { unit: 1, values: () => [width] },
    } }) : undefined);
    const points = kind === 'scatter' && uPlot.paths.points ? uPlot.paths.points() : undefined;
    const options: Omit<uPlot.Options, 'width' | 'height'> = {
      scales: { x: { time: !!temporal, ...(kind === 'bar' && !temporal && !numeric ? { range: (_: uPlot, low: number, high: number): [number, number] => [low - 0.6, high + 0.6] } : {}) }, y: kind === 'bar' ? { range: (_: uPlot, low: number, high: number): [number, number] => [Math.min(0, low), Math.max(0, high) * 1.05 || 1] } : {} },
      axes: [
        temporal || numeric ? axis() : { ...axis((at) => (Number.isInteger(at) ? (names[at] ?? '').slice(0, 14) : '')), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000] },
        axis(short, 60),
      ],
      series: [
        { label: columns[x]?.name, value: temporal ? undefined : (_: uPlot, value: number) => (value === null || value === undefined ? '' : numeric ? String(value) : names[value] ?? '') },
        ...ys.map((y, at) => ({
          label: columns[y]?.name, stroke: seriesColour(at), width: kind === 'line' ? 2 : 1, fill: kind === 'bar' ? seriesColour(at) : undefined,
          paths: kind === 'bar' ? bars(at) : points, points: { show: kind === 'scatter' || (kind === 'line' && order.length < 40), size: kind === 'scatter' ? 6 : 5, fill: seriesColour(at) },
        })),
      ],
    };
    return { data, names, options };
  }, [columns, rows, version, kind, x, ys, shade]);
  const label = `${kind} chart of ${ys.map((y) => columns[y]?.name).join(', ')} by ${columns[x]?.name}`;
  return (
    <div class="chart">
      <div class="bar">
        <Field label="Chart"><select value={kind} onChange={(event) => setChoice({ ...choice, kind: event.currentTarget.value as Kind })}>
          {['line', 'bar', 'scatter', 'pie'].map((name) => <option key={name}>{name}</option>)}
        </select></Field>
        <Field label="Across"><select value={x} onChange={(event) => setChoice({ ...choice, x: Number(event.currentTarget.value) })}>
          {columns.map((column, at) => <option key={at} value={at}>{column.name}</option>)}
        </select></Field>
        <fieldset class="checks"><legend>Values</legend>
          {columns.map((column, at) => at !== x && (
            <label key={at}><input type="checkbox" checked={ys.includes(at)} onChange={(event) => setChoice({ ...choice, ys: event.currentTarget.checked ? [...ys, at] : ys.filter((y) => y !== at) })} />{column.name}</label>
          ))}
        </fieldset>
        {rows.length > POINTS && <p class="muted">The first {POINTS.toLocaleString()} rows</p>}
      </div>
      {ys.length === 0 ? <p class="muted">Choose a column of values.</p>
        : kind === 'pie' ? <Pie names={drawn.names} values={drawn.data[1] as number[]} label={label} />
          : <Plot options={drawn.options} data={drawn.data} height={360} label={label} />}
    </div>
  );
}
