// The tree of call stacks as an icicle: a frame is as wide as the bytes below
// it, its callees hang under it. In a sandwich the callers of the frame in the
// middle stand on it.

import type { StackNode, Stacks } from '../types/view.gen';

export interface Tree {
  nodes: readonly StackNode[]; // those of callers last
  total: number;
  start: Float64Array; // left edge of each node, in bytes
  parent: Int32Array; // -1 under the root; of callers the frame that they call
  row: Int32Array; // from 0 down, of callers from -1 up
  lift: number; // rows above row 0: that of the root, or those of callers
  callers: number; // the first of them; how many nodes there are if there are none
  sandwich: boolean;
}

export function lay(s: Pick<Stacks, 'nodes' | 'total_bytes' | 'callers'> & { middle?: number | null }): Tree {
  const sandwich = typeof s.middle === 'number';
  const nodes = s.callers ? [...s.nodes, ...s.callers] : s.nodes;
  const n = nodes.length;
  const callers = s.nodes.length;
  const start = new Float64Array(n);
  const parent = new Int32Array(n);
  const row = new Int32Array(n);
  let cursor: number[] = [0]; // where the next node of each depth begins
  let open: number[] = []; // the path to the present node
  let lift = sandwich ? 0 : 1;
  nodes.forEach((node, i) => {
    const d = node.depth;
    if (i === callers) [cursor, open] = [[0], []];
    open.length = d;
    cursor.length = d + 1;
    start[i] = cursor[d]!;
    parent[i] = open[d - 1] ?? (i < callers ? -1 : 0);
    row[i] = i < callers ? d : -1 - d;
    lift = Math.max(lift, -row[i]!);
    cursor[d] = start[i]! + node.bytes;
    cursor.push(start[i]!);
    open.push(i);
  });
  return { nodes, total: s.total_bytes, start, parent, row, lift, callers, sandwich };
}

// path leads from the root to a node.
export function path(t: Tree, i: number): number[] {
  const out: number[] = [];
  for (; i >= 0; i = t.parent[i]!) out.unshift(i);
  return out;
}

// framesTo are the numbers of the frames on the way to a node, as an address has
// them; null if it is no frame.
export function framesTo(t: Tree, i: number): readonly number[] | null {
  const out = path(t, i).map((j) => t.nodes[j]!.frame);
  return out.includes(-1) ? null : out;
}

// nodeAlong is the node at the end of a path of frames, or the last one that is
// there; -1 for the root.
export function nodeAlong(t: Tree, frames: readonly number[]): number {
  let at = -1;
  for (const f of frames) {
    const next = t.nodes.findIndex((n, i) => n.frame === f && t.parent[i] === at && i < t.callers);
    if (next < 0) break;
    at = next;
  }
  return at;
}

// within reports whether a node is another, or lies under it.
export function within(t: Tree, i: number, root: number): boolean {
  return root < 0 || path(t, i).includes(root);
}

// rows is how many rows a tree has that is zoomed to a node.
export function rows(t: Tree, root: number): number {
  let deepest = -1;
  for (let i = Math.max(0, root); i < t.callers && (i <= root || root < 0 || t.row[i]! > t.row[root]!); i++) deepest = Math.max(deepest, t.row[i]!);
  return t.lift + deepest + 1;
}

// sibling is the next or previous node with the same parent, else the node itself.
export function sibling(t: Tree, i: number, by: 1 | -1): number {
  for (let j = i + by; j >= 0 && j < t.nodes.length; j += by) if (t.parent[j] === t.parent[i] && t.row[j] === t.row[i]) return j;
  return i;
}

// below and above are the nodes under and over a node, else the node itself.
export function below(t: Tree, i: number): number {
  if (i < 0) return t.nodes.length > 0 ? 0 : -1;
  if (i >= t.callers) return t.parent[i]!;
  return t.parent[i + 1] === i && i + 1 < t.callers ? i + 1 : i;
}

export function above(t: Tree, i: number): number {
  if (i < 0) return i;
  if (i >= t.callers) return t.parent[i + 1] === i ? i + 1 : i;
  return i === 0 && t.sandwich ? (t.callers < t.nodes.length ? t.callers : 0) : t.parent[i]!;
}
