// Draws rows of the segment map. States differ by pattern as well as colour:
// free is empty, allocated filled, pending hatched, unmapped dotted.

import { dots, hatch } from '../draw/canvas';
import { address, pool, size, stream } from '../format';
import type { Ink } from '../theme';
import { allocated, free, pending, unmapped } from './layout';
import type { Row } from './layout';

export const rowHeight = 22;
export const labelWidth = 346;
const pad = 4;

// Look is how the bars are scaled: pixels of a byte, or 0 to stretch every
// segment to the whole width; and how far they are moved.
export interface Look {
  perByte: number;
  offset: number;
  width: number;
}

export function barScale(look: Look, extent: number): { k: number; x0: number } {
  return look.perByte > 0 ? { k: look.perByte, x0: -look.offset } : { k: look.width / extent, x0: 0 };
}

export interface Marks {
  block: number | null;
  segment: number | null;
  hover: number | null; // offset in the hovered segment
  hoverSegment: number | null;
  pinned: ReadonlySet<number>;
  largest: { segment: number; offset: number } | null;
}

export function drawRow(c: CanvasRenderingContext2D, row: Row, extent: number, y: number, look: Look, marks: Marks, ink: Ink): void {
  const s = row.segment;
  if (marks.segment === s.address) {
    c.fillStyle = ink.line;
    c.fillRect(0, y, labelWidth + look.width + 20, rowHeight);
  }
  labels(c, row, y, marks.pinned.has(s.address), ink);
  c.save();
  c.beginPath();
  c.rect(labelWidth, y, look.width, rowHeight);
  c.clip();
  const { k, x0 } = barScale(look, extent);
  bar(c, row, labelWidth + x0, y + pad, k, look.width, marks, ink);
  c.restore();
}

function labels(c: CanvasRenderingContext2D, row: Row, y: number, pinned: boolean, ink: Ink): void {
  const s = row.segment;
  const middle = y + rowHeight / 2;
  c.textBaseline = 'middle';
  c.textAlign = 'left';
  c.font = `11px ${ink.mono}`;
  c.fillStyle = pinned ? ink.text : ink.muted;
  c.fillText(row.name ? `${row.name} ${address(s.address)}` : address(s.address), 10, middle);
  if (pinned) {
    c.fillStyle = ink.pinned;
    c.beginPath();
    c.moveTo(0, y + 3);
    c.lineTo(7, middle);
    c.lineTo(0, y + rowHeight - 3);
    c.fill();
  }
  c.font = `11px ${ink.sans}`;
  c.textAlign = 'right';
  c.fillStyle = ink.text;
  c.fillText(size(s.size_bytes), 184, middle);
  c.fillStyle = ink.muted;
  c.fillText(row.free > 0 ? size(row.free) : '-', 254, middle);
  c.textAlign = 'left';
  c.fillText(shortStream(s.stream), 264, middle);
  c.fillText(poolOf(row), 308, middle);
}

// poolOf names a private pool; where segments have names, the default pool is
// named by its kind.
function poolOf({ segment: s, name }: Row): string {
  if (s.pool === null) return '?';
  if (pool(s.pool) !== 'default') return pool(s.pool);
  return name ? (s.type ?? '-') : '-';
}

// shortStream keeps the end of a long handle, where handles differ.
function shortStream(handle: number): string {
  const text = stream(handle);
  return text.length > 6 ? '…' + text.slice(-4) : text;
}

// bar draws the blocks of a segment. Blocks narrower than a pixel are summed up
// pixel by pixel: the share in use is how much of the pixel is filled.
function bar(c: CanvasRenderingContext2D, row: Row, left: number, top: number, k: number, width: number, marks: Marks, ink: Ink): void {
  const s = row.segment;
  const height = rowHeight - 2 * pad;
  const right = labelWidth + width;
  // Where more is stuck than is live, the few that are live stand out.
  const use = marks.pinned.has(s.address) && row.stuck > row.allocated + row.pending ? ink.pinned : ink.live;
  const waits = hatch(c, ink.pending, ink.back, 5);
  const gone = dots(c, ink.muted, null);
  let used = 0;
  let begin = NaN;
  const flush = (x: number) => {
    if (Number.isNaN(begin)) return;
    const w = Math.max(1, x - begin);
    c.fillStyle = ink.free;
    c.fillRect(begin, top, w, height);
    c.globalAlpha = Math.min(1, used / (w / k));
    c.fillStyle = use;
    c.fillRect(begin, top, w, height);
    c.globalAlpha = 1;
    begin = NaN;
    used = 0;
  };
  for (const [offset, bytes, state, , requested] of s.blocks) {
    const x = left + offset * k;
    const w = bytes * k;
    if (x + w < labelWidth || x > right) continue;
    if (w < 1.5) {
      if (Number.isNaN(begin)) begin = x;
      if (state === allocated || state === pending) used += bytes;
      if (x + w - begin >= 1) flush(x + w);
      continue;
    }
    flush(x);
    switch (state) {
      case free:
        c.fillStyle = ink.free;
        c.fillRect(x, top, w, height);
        break;
      case allocated:
        c.fillStyle = use;
        c.fillRect(x, top, w - (w > 3 ? 1 : 0), height);
        if (requested < bytes) {
          const waste = (bytes - requested) * k;
          if (waste >= 0.75) {
            c.fillStyle = ink.waste;
            c.fillRect(x + w - waste - (w > 3 ? 1 : 0), top + height / 2, waste, height / 2);
          }
        }
        break;
      case pending:
        c.fillStyle = waits;
        c.fillRect(x, top, w - (w > 3 ? 1 : 0), height);
        break;
      case unmapped:
        c.fillStyle = gone;
        c.fillRect(x, top, w, height);
        break;
    }
  }
  flush(left + s.span_bytes * k);
  c.strokeStyle = ink.reserved;
  c.lineWidth = 1;
  c.strokeRect(Math.round(left) + 0.5, top - 0.5, Math.max(1, Math.round(s.span_bytes * k) - 1), height + 1);
  outlines(c, row, left, top, height, k, marks, ink);
}

function outlines(
  c: CanvasRenderingContext2D,
  row: Row,
  left: number,
  top: number,
  height: number,
  k: number,
  marks: Marks,
  ink: Ink,
): void {
  const s = row.segment;
  const round = (offset: number, bytes: number, colour: string, width: number) => {
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.strokeRect(left + offset * k, top - 1, Math.max(2, bytes * k), height + 2);
  };
  for (const [offset, bytes, , alloc] of s.blocks) {
    if (marks.largest && marks.largest.segment === s.address && marks.largest.offset === offset) {
      round(offset, bytes, ink.good, 2);
    }
    if (marks.hoverSegment === s.address && marks.hover === offset) round(offset, bytes, ink.text, 1.5);
    if (marks.block !== null && alloc === marks.block) round(offset, bytes, ink.accent, 2.5);
  }
}
