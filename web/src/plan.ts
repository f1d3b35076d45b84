// Reads the text of EXPLAIN FORMAT=TREE and of EXPLAIN ANALYZE: one operator a line, four spaces a level.

export interface Operator {
  text: string; cost?: number; estimated?: number; loops?: number; actual?: number; milliseconds?: number; neverRun: boolean;
  children: Operator[];
}

const LINE = /^(\s*)-> (.*)$/;
const COST = /\s*\(cost=(?:[\d.e+-]+\.\.)?([\d.e+-]+) rows=([\d.e+-]+)\)/;
const ACTUAL = /\s*\(actual time=[\d.e+-]+?\.\.([\d.e+-]+) rows=([\d.e+-]+) loops=(\d+)\)/;
const NEVER = /\s*\(never executed\)/;

function operator(words: string): Operator {
  const cost = COST.exec(words);
  const actual = ACTUAL.exec(words);
  const neverRun = NEVER.test(words);
  const text = words.replace(COST, '').replace(ACTUAL, '').replace(NEVER, '').trim();
  const loops = actual ? Number(actual[3]) : undefined;
  return {
    text, neverRun, loops, children: [],
    cost: cost ? Number(cost[1]) : undefined,
    estimated: cost ? Number(cost[2]) : undefined,
    actual: actual ? Number(actual[2]) : undefined,
    milliseconds: actual ? Number(actual[1]) * (loops ?? 1) : undefined,
  };
}

/** The operators of a plan, or nothing where the text is none. */
export function readPlan(text: string): Operator[] {
  const roots: Operator[] = [];
  const open: { indent: number; node: Operator }[] = [];
  for (const line of text.split('\n')) {
    const found = LINE.exec(line);
    if (!found) continue;
    const indent = found[1].length;
    const node = operator(found[2]);
    while (open.length && open[open.length - 1].indent >= indent) open.pop();
    (open.at(-1)?.node.children ?? roots).push(node);
    open.push({ indent, node });
  }
  return roots;
}

/** Time spent in an operator itself, without its children. */
export const ownTime = (node: Operator): number =>
  Math.max(0, (node.milliseconds ?? 0) - node.children.reduce((sum, child) => sum + (child.milliseconds ?? 0), 0));
