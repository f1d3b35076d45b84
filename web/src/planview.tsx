// A plan as a picture: a tree of operators, the rows that the planner expected beside those that came, and where the time went.
import { useMemo, useState } from 'preact/hooks';
import { Graph, type Box, type Edge } from './graph';
import { ownTime, readPlan, type Operator } from './plan';
import { Bar, Dialog } from './ui';

const count = (value: number | undefined): string => (value === undefined ? '–' : value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString() : value.toFixed(1));
const time = (ms: number): string => (ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 1 ? `${ms.toFixed(1)} ms` : `${(ms * 1000).toFixed(0)} µs`);

function all(nodes: Operator[]): Operator[] {
  return nodes.flatMap((node) => [node, ...all(node.children)]);
}

/** How many times the estimate is off; 1 is exact. */
function miss(node: Operator): number {
  if (node.estimated === undefined || node.actual === undefined) return 1;
  const [low, high] = [Math.min(node.estimated, node.actual) + 1, Math.max(node.estimated, node.actual) + 1];
  return high / low;
}

function Card({ node, share }: { node: Operator; share: number }) {
  const [name, ...rest] = node.text.split(/(?=: | on | using )/);
  const most = Math.max(node.estimated ?? 0, node.actual ?? 0, 1);
  return (
    <span class="operator">
      <b>{name}</b>
      <span class="what">{rest.join('').replace(/^: /, '')}</span>
      <span class="rows">
        <span>est. {count(node.estimated)}</span><Bar share={(node.estimated ?? 0) / most} tone="grey" />
        {node.actual !== undefined && <><span>actual {count(node.actual)}</span><Bar share={node.actual / most} /></>}
      </span>
      <span class="foot">
        {node.milliseconds !== undefined ? <><span>{time(ownTime(node))} own</span><span>{(100 * share).toFixed(0)} %</span></> : <span>cost {count(node.cost)}</span>}
        {(node.loops ?? 1) > 1 && <span>×{count(node.loops)}</span>}
        {node.neverRun && <span>never run</span>}
      </span>
    </span>
  );
}

export function PlanView({ text }: { text: string }) {
  const [open, setOpen] = useState<Operator | null>(null);
  const roots = useMemo(() => readPlan(text), [text]);
  const { boxes, edges, worst } = useMemo(() => {
    const boxes: Box[] = [];
    const edges: Edge[] = [];
    const total = all(roots).reduce((sum, node) => sum + ownTime(node), 0);
    const place = (node: Operator, layer: number): string => {
      const id = String(boxes.length);
      const share = total > 0 ? ownTime(node) / total : 0;
      const tone = share > 0.5 ? 'hot' : share > 0.2 ? 'warm' : '';
      boxes.push({ id, width: 232, height: node.actual === undefined ? 112 : 134, layer, tone: `${tone} ${miss(node) >= 10 ? 'missed' : ''}`,
        label: `${node.text}; expected ${count(node.estimated)} rows${node.actual === undefined ? '' : `, ${count(node.actual)} came, ${time(ownTime(node))}`}`,
        content: <Card node={node} share={share} />, onClick: () => setOpen(node) });
      for (const child of node.children) {
        const rows = child.actual ?? child.estimated ?? 1;
        edges.push({ from: id, to: place(child, layer + 1), weight: Math.min(10, 1.5 + Math.log10(Math.max(1, rows * (child.loops ?? 1)))), label: `${count(rows)}` });
      }
      return id;
    };
    roots.forEach((root) => place(root, 0));
    return { boxes, edges, worst: all(roots).filter((node) => miss(node) >= 10) };
  }, [roots]);
  if (!roots.length) return <pre class="sql" tabIndex={0}>{text}</pre>;
  const total = roots.reduce((sum, root) => sum + (root.milliseconds ?? 0), 0);
  return (
    <div class="plan">
      <p class="muted">{boxes.length} operators{total > 0 && <>, {time(total)}</>}. Rows flow upwards. {worst.length > 0 && <strong>{worst.length === 1 ? 'One estimate is' : `${worst.length} estimates are`} off by ten times or more (dashed border).</strong>}</p>
      <Graph label="Plan" boxes={boxes} edges={edges} gap={38} />
      <details><summary>As text</summary><pre class="sql" tabIndex={0}>{text}</pre></details>
      {open && (
        <Dialog title="Operator" onClose={() => setOpen(null)}>
          <p class="mono">{open.text}</p>
          <dl class="facts">
            <dt>Rows expected</dt><dd>{count(open.estimated)}</dd>
            <dt>Rows that came</dt><dd>{count(open.actual)}</dd>
            <dt>Times run</dt><dd>{count(open.loops)}</dd>
            <dt>Cost</dt><dd>{open.cost ?? '–'}</dd>
            <dt>Time with inputs</dt><dd>{open.milliseconds === undefined ? '–' : time(open.milliseconds)}</dd>
            <dt>Own time</dt><dd>{open.milliseconds === undefined ? '–' : time(ownTime(open))}</dd>
          </dl>
        </Dialog>
      )}
    </div>
  );
}
