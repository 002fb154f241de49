// The tree of call stacks as an icicle: a frame is as wide as the bytes below
// it, its callees hang under it.

import type { StackNode, Stacks } from '../types/view.gen';

export interface Tree {
  nodes: readonly StackNode[];
  total: number;
  start: Float64Array; // left edge of each node, in bytes
  parent: Int32Array; // -1 under the root
  deepest: number;
}

export function lay(s: Pick<Stacks, 'nodes' | 'total_bytes'>): Tree {
  const n = s.nodes.length;
  const start = new Float64Array(n);
  const parent = new Int32Array(n);
  const cursor: number[] = [0]; // where the next node of each depth begins
  const open: number[] = []; // the path to the present node
  let deepest = 0;
  s.nodes.forEach((node, i) => {
    const d = node.depth;
    open.length = d;
    cursor.length = d + 1;
    start[i] = cursor[d]!;
    parent[i] = open[d - 1] ?? -1;
    cursor[d] = start[i]! + node.bytes;
    cursor.push(start[i]!);
    open.push(i);
    deepest = Math.max(deepest, d);
  });
  return { nodes: s.nodes, total: s.total_bytes, start, parent, deepest };
}

// path leads from the outermost frame to a node.
export function path(t: Tree, i: number): number[] {
  const out: number[] = [];
  for (; i >= 0; i = t.parent[i]!) out.unshift(i);
  return out;
}

// matching says which nodes match, and what they come to: bytes under several
// matching frames of one stack count once.
export function matching(t: Tree, test: RegExp | null): { marks: Uint8Array; bytes: number; count: number } {
  const marks = new Uint8Array(t.nodes.length);
  let bytes = 0;
  let count = 0;
  if (!test) return { marks, bytes, count };
  let until = -1; // depth of the match that the present node lies under
  t.nodes.forEach((n, i) => {
    if (until >= 0 && n.depth <= until) until = -1;
    if (!test.test(`${n.file}:${n.line} ${n.name}`)) return;
    marks[i] = 1;
    count++;
    if (until < 0) {
      bytes += n.bytes;
      until = n.depth;
    }
  });
  return { marks, bytes, count };
}

// sibling is the next or previous node with the same parent, else the node itself.
export function sibling(t: Tree, i: number, by: 1 | -1): number {
  const d = t.nodes[i]!.depth;
  for (let j = i + by; j >= 0 && j < t.nodes.length; j += by) {
    const n = t.nodes[j]!;
    if (n.depth < d) break;
    if (n.depth === d) return j;
  }
  return i;
}

export function firstChild(t: Tree, i: number): number {
  const n = t.nodes[i + 1];
  return n && n.depth === t.nodes[i]!.depth + 1 ? i + 1 : i;
}
