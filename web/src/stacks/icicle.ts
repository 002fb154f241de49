// Draws the part of the tree that is in view.

import { short } from '../draw/canvas';
import { share, size } from '../format';
import type { Ink, Theme } from '../theme';
import type { StackNode } from '../types/view.gen';
import { path, type Tree } from './tree';

const narrowest = 0.6;

export interface Sight {
  tree: Tree;
  root: number; // node that is zoomed to, -1 for all
  searching: boolean;
  selected: number;
  hover: number;
  row: number; // height of a frame
  look: Look;
}

// Look is what frames look like, apart from their width.
export interface Look {
  tint: (n: StackNode, theme: Theme, ink: Ink) => string;
  amount: (n: StackNode, total: number) => string;
  all: (total: number) => string;
}

// plainLook is that of one run: what was allocated below a frame.
export const plainLook: Look = {
  tint,
  amount: (n, total) => `${size(n.bytes)}, ${share(n.bytes, total)}`,
  all: (total) => `all: ${size(total)}`,
};

// rowHeight lets a shallow graph use the room that there is.
export function rowHeight(rows: number, room: number): number {
  return Math.max(20, Math.min(120, Math.floor(room / rows)));
}

// From this height on a frame has two lines.
const twoLines = 36;

export interface Range {
  from: number;
  bytes: number;
}

export function rangeOf(s: Sight): Range {
  return s.root < 0 ? { from: 0, bytes: s.tree.total } : { from: s.tree.start[s.root]!, bytes: s.tree.nodes[s.root]!.bytes };
}

export function nameOf(n: StackNode): string {
  if (n.native || n.file === '') return n.name;
  return `${n.name} ${n.file.slice(n.file.lastIndexOf('/') + 1)}:${n.line}`;
}

// Files have colours, so that what belongs together is seen; libraries stand back.
const own: Record<Theme, readonly string[]> = {
  light: ['#8fc1e3', '#f0c566', '#7cc9ae', '#e3b3cf', '#f2a477', '#b9d9ee', '#d9cf6a'],
  dark: ['#2f6f9c', '#8f6a12', '#1d7558', '#86526f', '#9a4a17', '#3f7fa5', '#7a741f'],
};

function tint(n: StackNode, theme: Theme, ink: Ink): string {
  if (!n.user) return n.file === '' ? ink.panel : ink.reservedFill;
  let h = 7;
  for (let i = 0; i < n.file.length; i++) h = (h * 31 + n.file.charCodeAt(i)) | 0;
  h = (h * 31 + n.line) | 0;
  const list = own[theme];
  return list[Math.abs(h) % list.length]!;
}

// yOf is the upper edge of a node in the whole graph.
export function yOf(s: Sight, i: number): number {
  return (s.tree.row[i]! + s.tree.lift) * s.row;
}

// draw draws the rows between top and top + height of the graph; the ancestors
// of the zoomed node stand above it over the whole width.
export function draw(c: CanvasRenderingContext2D, s: Sight, width: number, height: number, top: number, theme: Theme, ink: Ink): void {
  const { tree: t } = s;
  const r = rangeOf(s);
  const k = width / Math.max(1, r.bytes);
  if (!t.sandwich) frame(c, 0, -top, width, s.row, [s.look.all(t.total)], ink.panel, ink, false, false);
  if (s.root >= 0) for (const i of path(t, s.root)) one(c, s, i, 0, width, top, theme, ink);
  for (let i = s.root + 1; i < t.nodes.length; i++) {
    const n = t.nodes[i]!;
    if (s.root >= 0 && t.row[i]! <= t.row[s.root]!) break;
    const y = yOf(s, i) - top;
    const w = n.bytes * k;
    if (w < narrowest) continue;
    if (y > height || y + s.row < 0) continue;
    one(c, s, i, (t.start[i]! - r.from) * k, w, top, theme, ink);
  }
}

function one(c: CanvasRenderingContext2D, s: Sight, i: number, x: number, w: number, top: number, theme: Theme, ink: Ink): void {
  const n = s.tree.nodes[i]!;
  const y = yOf(s, i) - top;
  const found = s.searching && !!n.match;
  const amount = s.look.amount(n, s.tree.total);
  const lines = s.row >= twoLines ? [nameOf(n), amount] : [w > 160 ? `${nameOf(n)}  ${amount}` : nameOf(n)];
  frame(c, x, y, w, s.row, lines, found ? ink.pinned : s.look.tint(n, theme, ink), ink, s.searching && !found, found);
  const middle = s.tree.sandwich && i === 0;
  if (i === s.selected || i === s.hover || middle) {
    c.strokeStyle = i === s.selected ? ink.accent : ink.text;
    c.lineWidth = i === s.selected || middle ? 2 : 1;
    c.strokeRect(x + 1, y + 1, Math.max(1, w - 2), s.row - 2);
  }
}

function frame(
  c: CanvasRenderingContext2D,
  x: number,
  y: number,
  w: number,
  row: number,
  lines: readonly string[],
  fill: string,
  ink: Ink,
  dim: boolean,
  strong: boolean,
): void {
  c.globalAlpha = dim ? 0.35 : 1;
  c.fillStyle = fill;
  c.fillRect(x, y, Math.max(narrowest, w - (w > 3 ? 1 : 0)), row - 1);
  c.globalAlpha = 1;
  if (w < 24) return;
  c.fillStyle = strong ? '#1b2230' : dim ? ink.muted : ink.text;
  c.font = `11.5px ${ink.sans}`;
  c.textAlign = 'left';
  c.textBaseline = 'middle';
  lines.forEach((text, i) => c.fillText(short(c, text, w - 8), x + 4, y + row / 2 + (i - (lines.length - 1) / 2) * 15));
}

// nodeAt is the node at a point, -1 for the root row, -2 for none.
export function nodeAt(s: Sight, width: number, x: number, y: number): number {
  const t = s.tree;
  const row = Math.floor(y / s.row) - t.lift;
  if (row < 0 && !t.sandwich) return -1;
  if (s.root >= 0) {
    const way = path(t, s.root);
    if (row < way.length) return way[row]!;
  }
  const r = rangeOf(s);
  const at = r.from + (x / width) * r.bytes;
  for (let i = Math.max(0, s.root); i < t.nodes.length; i++) {
    if (i > s.root && s.root >= 0 && t.row[i]! <= t.row[s.root]!) break;
    if (t.row[i] === row && t.start[i]! <= at && at < t.start[i]! + t.nodes[i]!.bytes) return i;
  }
  return -2;
}
