// Draws rows of the segment map. States differ by pattern as well as colour:
// free is empty, allocated filled, pending hatched, unmapped dotted.

import { dots, hatch } from '../draw/canvas';
import { address, pool, size, stream } from '../format';
import type { Ink } from '../theme';
import { allocated, free, pending, unmapped } from './layout';
import type { Row } from './layout';

export const rowHeight = 22;
const pad = 4;

// barsAt is where the bars begin in a map of a width. What has no room left of
// them goes: the pool first, then the stream. The head goes by the same widths.
export function barsAt(width: number): number {
  return width >= 760 ? 384 : width >= 620 ? 304 : 262;
}

// Look is how the bars are scaled: pixels of a byte, or 0 to stretch every
// segment to the whole width; where they begin, and how far they are moved.
export interface Look {
  perByte: number;
  offset: number;
  left: number;
  width: number;
}

// lookOf leaves to the bars what the labels do not take of a map's width.
export function lookOf(box: HTMLElement | null, perPixel: (width: number) => number, offset = 0): Look {
  const all = box?.clientWidth ?? 1200;
  const left = barsAt(all);
  const width = Math.max(1, all - left - 12);
  return { perByte: perPixel(width), offset, left, width };
}

export function barScale(look: Look, extent: number): { k: number; x0: number } {
  return look.perByte > 0 ? { k: look.perByte, x0: -look.offset } : { k: look.width / extent, x0: 0 };
}

// Spot is a block by its place.
export interface Spot {
  segment: number;
  offset: number;
}

export interface Marks {
  block: number | null;
  segment: number | null;
  hover: Spot | null;
  pinned: ReadonlySet<number>;
  hole: Spot | null;
  beside: ReadonlySet<number>; // allocations at the edges of the hole
  request: number; // bytes that did not fit into it; 0 if none failed
  tints: readonly string[] | null; // by index of colour
}

export function drawRow(c: CanvasRenderingContext2D, row: Row, extent: number, y: number, look: Look, marks: Marks, ink: Ink): void {
  const s = row.segment;
  if (marks.segment === s.address) {
    c.fillStyle = ink.line;
    c.fillRect(0, y, look.left + look.width + 20, rowHeight);
  }
  labels(c, row, y, look.left, marks.pinned.has(s.address), ink);
  c.save();
  c.beginPath();
  c.rect(look.left, y, look.width, rowHeight);
  c.clip();
  const { k, x0 } = barScale(look, extent);
  bar(c, row, look.left + x0, y + pad, k, look, marks, ink);
  c.restore();
}

function labels(c: CanvasRenderingContext2D, row: Row, y: number, room: number, pinned: boolean, ink: Ink): void {
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
  if (room > 300) c.fillText(shortStream(s.stream), 264, middle);
  if (room > 380) c.fillText(poolOf(row), 308, middle);
}

// poolOf names the pool; where segments have names, with the kind of its blocks.
function poolOf({ segment: s, name }: Row): string {
  return name && s.type ? `${pool(s.pool)}, ${s.type}` : pool(s.pool);
}

// shortStream keeps the end of a long handle, where handles differ.
function shortStream(handle: number): string {
  const text = stream(handle);
  return text.length > 6 ? '…' + text.slice(-4) : text;
}

// Mixed is what blocks too narrow to draw add up to in one pixel.
class Mixed {
  private readonly bytes = new Map<string, number>();
  private used = 0;
  begin = NaN;

  add(x: number, colour: string | null, bytes: number): void {
    if (Number.isNaN(this.begin)) this.begin = x;
    if (colour === null) return;
    this.used += bytes;
    this.bytes.set(colour, (this.bytes.get(colour) ?? 0) + bytes);
  }

  // take gives the colour of most bytes and how much of the pixel is used.
  take(all: number): { colour: string; part: number } | null {
    let best: [string, number] | null = null;
    for (const e of this.bytes) if (!best || e[1] > best[1]) best = e;
    const out = best && { colour: best[0], part: Math.min(1, this.used / all) };
    this.bytes.clear();
    this.used = 0;
    this.begin = NaN;
    return out;
  }
}

// bar draws the blocks of a segment. Blocks narrower than a pixel are summed up
// pixel by pixel: the share in use is how much of the pixel is filled.
function bar(c: CanvasRenderingContext2D, row: Row, left: number, top: number, k: number, look: Look, marks: Marks, ink: Ink): void {
  const s = row.segment;
  const height = rowHeight - 2 * pad;
  const waits = hatch(c, ink.pending, ink.back, 5);
  const gone = dots(c, ink.muted, null);
  const tint = (i: number) => marks.tints?.[s.colours?.[i] ?? 0] ?? ink.live;
  const mixed = new Mixed();
  const flush = (x: number) => {
    if (Number.isNaN(mixed.begin)) return;
    const begin = mixed.begin;
    const w = Math.max(1, x - begin);
    c.fillStyle = ink.free;
    c.fillRect(begin, top, w, height);
    const got = mixed.take(w / k);
    if (!got) return;
    c.globalAlpha = got.part;
    c.fillStyle = got.colour;
    c.fillRect(begin, top, w, height);
    c.globalAlpha = 1;
  };
  s.blocks.forEach(([offset, bytes, state, , requested], i) => {
    const x = left + offset * k;
    const w = bytes * k;
    if (x + w < look.left || x > look.left + look.width) return;
    if (w < 1.5) {
      mixed.add(x, state === allocated ? tint(i) : state === pending ? ink.pending : null, bytes);
      if (x + w - mixed.begin >= 1) flush(x + w);
      return;
    }
    flush(x);
    const gap = w > 3 ? 1 : 0;
    switch (state) {
      case free:
        c.fillStyle = ink.free;
        c.fillRect(x, top, w, height);
        break;
      case allocated:
        c.fillStyle = tint(i);
        c.fillRect(x, top, w - gap, height);
        if (requested < bytes && (bytes - requested) * k >= 0.75) {
          c.fillStyle = ink.waste;
          c.fillRect(x + w - (bytes - requested) * k - gap, top + height / 2, (bytes - requested) * k, height / 2);
        }
        break;
      case pending:
        c.fillStyle = waits;
        c.fillRect(x, top, w - gap, height);
        break;
      case unmapped:
        c.fillStyle = gone;
        c.fillRect(x, top, w, height);
        break;
    }
  });
  flush(left + s.span_bytes * k);
  c.strokeStyle = ink.reserved;
  c.lineWidth = 1;
  c.strokeRect(Math.round(left) + 0.5, top - 0.5, Math.max(1, Math.round(s.span_bytes * k) - 1), height + 1);
  outlines(c, row, left, top, height, k, marks, ink);
}

// outlines frames blocks with two lines, one of the ground's colour round the
// other: that is seen on every colour.
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
    const x = left + offset * k;
    const w = Math.max(3, bytes * k);
    for (const [line, style] of [
      [width + 3, ink.back],
      [width, colour],
    ] as const) {
      c.lineWidth = line;
      c.strokeStyle = style;
      c.strokeRect(x, top, w, height);
    }
  };
  const at = (spot: Spot | null, offset: number) => spot !== null && spot.segment === s.address && spot.offset === offset;
  for (const [offset, bytes, , alloc] of s.blocks) {
    if (alloc >= 0 && marks.beside.has(alloc)) round(offset, bytes, ink.text, 1.5);
    if (at(marks.hole, offset)) {
      round(offset, bytes, ink.good, 2.5);
      if (marks.request > 0) requested(c, left + offset * k, top + height, marks.request * k, ink);
    }
  }
  for (const [offset, bytes, , alloc] of s.blocks) {
    if (at(marks.hover, offset)) round(offset, bytes, ink.text, 1.5);
    if (marks.block !== null && alloc === marks.block) round(offset, bytes, ink.accent, 3);
  }
}

// requested draws a failed request under the hole, to scale.
function requested(c: CanvasRenderingContext2D, x: number, y: number, w: number, ink: Ink): void {
  c.fillStyle = ink.oom;
  c.fillRect(x, y + 1, Math.max(2, w), 3);
}
