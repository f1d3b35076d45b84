// Draws boxes in layers with curves between them: plans, tables with their foreign keys, sessions that wait for one another.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Button } from './ui';

export interface Box { id: string; width: number; height: number; layer: number; content: ComponentChildren; tone?: string; label: string; onClick?: () => void }
export interface Edge { from: string; to: string; label?: string; weight?: number; fromY?: number; toY?: number; marker?: 'arrow' }
interface Place { x: number; y: number; box: Box }

const GAP = 28;
/** Smaller texts cannot be read. */
const SMALLEST = 0.55;

/** Places boxes layer by layer, each near the middle of its neighbours in the layer before. */
function place(boxes: Box[], edges: Edge[], across: boolean, gap: number): { places: Map<string, Place>; width: number; height: number } {
  const layers: Box[][] = [];
  for (const box of boxes) (layers[box.layer] ??= []).push(box);
  const places = new Map<string, Place>();
  const near = new Map<string, string[]>();
  for (const edge of edges) {
    near.set(edge.from, [...(near.get(edge.from) ?? []), edge.to]);
    near.set(edge.to, [...(near.get(edge.to) ?? []), edge.from]);
  }
  const long = (box: Box) => (across ? box.height : box.width);
  const extents = layers.map((layer) => (layer ?? []).reduce((sum, box) => sum + long(box) + GAP, -GAP));
  const most = Math.max(0, ...extents);
  let depth = 0;
  layers.forEach((layer) => {
    if (!layer) return;
    const middle = (box: Box): number => {
      const seen = (near.get(box.id) ?? []).map((id) => places.get(id)).filter((found): found is Place => !!found);
      if (!seen.length) return most / 2;
      return seen.reduce((sum, found) => sum + (across ? found.y + found.box.height / 2 : found.x + found.box.width / 2), 0) / seen.length;
    };
    const wanted = layer.map((box, at) => ({ box, at, want: middle(box) })).sort((a, b) => a.want - b.want || a.at - b.at);
    const sum = wanted.reduce((total, { box }) => total + long(box) + GAP, -GAP);
    const centre = wanted.reduce((total, { want }) => total + want, 0) / wanted.length;
    let from = Math.max(0, Math.min(most - sum, centre - sum / 2));
    for (const { box } of wanted) {
      places.set(box.id, across ? { x: depth, y: from, box } : { x: from, y: depth, box });
      from += long(box) + GAP;
    }
    depth += Math.max(...layer.map((box) => (across ? box.width : box.height))) + gap;
  });
  return across ? { places, width: depth - gap, height: most } : { places, width: most, height: depth - gap };
}

function path(from: Place, to: Place, edge: Edge, across: boolean): { d: string; x: number; y: number } {
  if (!across) {
    const down = from.y < to.y;
    const x1 = from.x + from.box.width / 2;
    const y1 = down ? from.y + from.box.height : from.y;
    const x2 = to.x + to.box.width / 2;
    const y2 = down ? to.y : to.y + to.box.height;
    const half = (y1 + y2) / 2;
    return { d: `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`, x: (x1 + x2) / 2, y: half };
  }
  const y1 = from.y + (edge.fromY ?? from.box.height / 2);
  const y2 = to.y + (edge.toY ?? to.box.height / 2);
  if (from === to || from.x === to.x) {
    const x = from.x + from.box.width;
    return { d: `M${x} ${y1}C${x + 40} ${y1} ${x + 40} ${y2} ${x} ${y2}`, x: x + 30, y: (y1 + y2) / 2 };
  }
  const right = from.x < to.x;
  const x1 = right ? from.x + from.box.width : from.x;
  const x2 = right ? to.x : to.x + to.box.width;
  const half = (x1 + x2) / 2;
  return { d: `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`, x: half, y: (y1 + y2) / 2 };
}

export function Graph({ label, boxes, edges, across = false, gap = 48 }: { label: string; boxes: Box[]; edges: Edge[]; across?: boolean; gap?: number }) {
  const { places, width, height } = useMemo(() => place(boxes, edges, across, gap), [boxes, edges, across, gap]);
  const host = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setRoom(element.clientWidth - 20));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const fit = room > 0 ? Math.min(1, Math.max(SMALLEST, room / (width + 60))) : 1;
  const zoom = chosen ?? fit;
  const step = (by: number) => setChosen(Math.min(2, Math.max(0.2, zoom * by)));
  return (
    <div class="graph-box">
    <div class="zoom" role="group" aria-label={`Size of ${label}`}>
      <Button label="−" aria-label="Smaller" onClick={() => step(0.8)} /><Button label={`${Math.round(zoom * 100)} %`} aria-label={`${Math.round(zoom * 100)} %; fit the width`} onClick={() => setChosen(null)} /><Button label="+" aria-label="Larger" onClick={() => step(1.25)} />
    </div>
    <div class="graph" tabIndex={0} role="region" aria-label={label} ref={host}>
      <div class="graph-room" style={{ width: `${(width + 60) * zoom}px`, height: `${(height + 8) * zoom}px` }}>
      <div class="graph-sheet" style={{ width: `${width + 60}px`, height: `${height + 8}px`, transform: `scale(${zoom})` }}>
        <svg width={width + 60} height={height + 8} aria-hidden="true">
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="arrow" /></marker></defs>
          {edges.map((edge, at) => {
            const from = places.get(edge.from);
            const to = places.get(edge.to);
            if (!from || !to) return null;
            const { d, x, y } = path(from, to, edge, across);
            return (
              <g key={at}>
                <path d={d} class="edge" stroke-width={edge.weight ?? 1.5} marker-end={edge.marker ? 'url(#arrow)' : undefined} />
                {edge.label && <text x={x} y={y} class="edge-label" text-anchor="middle" dy="-4">{edge.label}</text>}
              </g>
            );
          })}
        </svg>
        {[...places.values()].map(({ x, y, box }) => {
          const style = { left: `${x}px`, top: `${y}px`, width: `${box.width}px`, height: `${box.height}px` };
          return box.onClick
            ? <button type="button" class={`box ${box.tone ?? ''}`} key={box.id} style={style} onClick={box.onClick}>{box.content}</button>
            : <div class={`box ${box.tone ?? ''}`} key={box.id} style={style} role="group" aria-label={box.label}>{box.content}</div>;
        })}
      </div>
      </div>
    </div>
    </div>
  );
}

/** Layers for `Graph`: a node comes one layer after the farthest node that it points to; circles are cut. */
export function layersOf(ids: string[], edges: { from: string; to: string }[]): Map<string, number> {
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) if (from !== to) next.set(from, [...(next.get(from) ?? []), to]);
  const layer = new Map<string, number>();
  const visit = (id: string, open: Set<string>): number => {
    const known = layer.get(id);
    if (known !== undefined) return known;
    if (open.has(id)) return -1;
    open.add(id);
    const deepest = (next.get(id) ?? []).reduce((most, other) => Math.max(most, visit(other, open)), -1);
    open.delete(id);
    layer.set(id, deepest + 1);
    return deepest + 1;
  };
  for (const id of ids) visit(id, new Set());
  return layer;
}
