// A flame graph of folded stacks: a frame is as wide as its share of the time, and stands below the frame that called it.
import { useMemo, useState } from 'preact/hooks';
import { show, type Row } from './api';
import { Bar, Button } from './ui';

export interface Frame { name: string; value: number; depth: number; from: number; parent: Frame | null; children: Frame[] }

const LINE = 22;
/** Narrower frames are not drawn; a share of the width. */
const NARROWEST = 0.0008;

/** Stacks from rows: `a;b;c 12` in one column, or the stack and the number in two. */
export function readStacks(rows: Row[]): { names: string[]; value: number }[] {
  const stacks: { names: string[]; value: number }[] = [];
  for (const row of rows) {
    const lines = row.length > 1 ? [`${show(row[0])} ${show(row[row.length - 1])}`] : show(row[0]).split('\n');
    for (const line of lines) {
      const [, stack, value] = /^(.*\S)\s+(\d+(?:\.\d+)?)\s*$/.exec(line) ?? [];
      if (stack) stacks.push({ names: stack.split(';').map((name) => name.trim()), value: Number(value) });
    }
  }
  return stacks;
}

/** The stacks as a tree, frames of one name below the same frame added up. */
export function flameOf(stacks: { names: string[]; value: number }[]): Frame {
  const root: Frame = { name: 'all', value: 0, depth: 0, from: 0, parent: null, children: [] };
  for (const { names, value } of stacks) {
    root.value += value;
    let at = root;
    for (const name of names) {
      let child = at.children.find((one) => one.name === name);
      if (!child) { child = { name, value: 0, depth: at.depth + 1, from: 0, parent: at, children: [] }; at.children.push(child); }
      child.value += value;
      at = child;
    }
  }
  const place = (frame: Frame) => {
    let from = frame.from;
    for (const child of frame.children) { child.from = from; from += child.value; place(child); }
  };
  place(root);
  return root.children.length === 1 ? root.children[0] : root;
}

const all = (frame: Frame): Frame[] => [frame, ...frame.children.flatMap(all)];
const isWithin = (frame: Frame, zoom: Frame): boolean => frame.from >= zoom.from && frame.from + frame.value <= zoom.from + zoom.value && frame.depth >= zoom.depth;

/** One of the series' colours for a name: the same name has the same colour everywhere. */
function tone(name: string): number {
  let hash = 7;
  for (const letter of name.replace(/[\d.]+/g, '')) hash = (hash * 31 + letter.codePointAt(0)!) >>> 0;
  return (hash % 6) + 1;
}

export function Flame({ rows, unit }: { rows: Row[]; unit: (value: number) => string }) {
  const root = useMemo(() => flameOf(readStacks(rows)), [rows]);
  const [chosen, setChosen] = useState<Frame | null>(null);
  const zoom = chosen ?? root;
  if (root.value === 0) return <p class="muted">The profile is empty.</p>;
  const above: Frame[] = [];
  for (let frame = zoom.parent; frame && frame.depth >= root.depth; frame = frame.parent) above.unshift(frame);
  const shown = all(root).filter((frame) => isWithin(frame, zoom) && frame.value / zoom.value >= NARROWEST);
  const top = zoom.depth - above.length;
  const deepest = Math.max(...shown.map((frame) => frame.depth)) - top + 1;
  const own = (frame: Frame) => frame.value - frame.children.reduce((sum, child) => sum + child.value, 0);
  const words = (frame: Frame) => `${frame.name}: ${unit(frame.value)}, ${((100 * frame.value) / root.value).toFixed(1)} % of all, ${unit(own(frame))} own`;
  const box = (frame: Frame, left: number, width: number) => (
    <button type="button" key={`${frame.depth} ${frame.from} ${frame.name}`} class={`frame tone-${tone(frame.name)}`} title={words(frame)} aria-label={words(frame)}
      style={{ left: `${left}%`, width: `${width}%`, top: `${(frame.depth - top) * LINE}px` }} onClick={() => setChosen(frame === root ? null : frame)}><span>{frame.name}</span></button>
  );
  const worst = all(root).filter((frame) => own(frame) > 0).sort((a, b) => own(b) - own(a)).slice(0, 8);
  return (
    <div class="flame-view">
      <p class="muted">{unit(root.value)} in all. A frame is as wide as its time; click it to enlarge it. {chosen && <Button label="Show all" onClick={() => setChosen(null)} />}</p>
      <div class="flame-box" role="region" aria-label="Flame graph" tabIndex={0}><div class="flame" style={{ height: `${deepest * LINE}px` }}>
        {above.map((frame) => box(frame, 0, 100))}
        {shown.map((frame) => box(frame, (100 * (frame.from - zoom.from)) / zoom.value, (100 * frame.value) / zoom.value))}
      </div></div>
      <h3>Most time of their own</h3>
      <ul class="worst">{worst.map((frame) => <li key={`${frame.depth} ${frame.from}`}><Bar share={own(frame) / root.value} /><span>{unit(own(frame))}</span><span>{((100 * own(frame)) / root.value).toFixed(1)} %</span><button type="button" class="as-text" onClick={() => setChosen(frame === root ? null : frame)}>{frame.name}</button></li>)}</ul>
    </div>
  );
}
