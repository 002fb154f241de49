// The memory curve: reserved above, live below, what was asked for as a line.

import { sizeTicks, tickSize } from '../format';
import type { Ink } from '../theme';
import type { Curve, Meta } from '../types/view.gen';
import { hatch } from './canvas';

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Scale {
  from: number;
  to: number;
  low: number;
  high: number;
}

export function xOf(b: Box, s: Scale, x: number): number {
  return b.left + ((x - s.from) / (s.to - s.from)) * b.width;
}

export function yOf(b: Box, s: Scale, bytes: number): number {
  return b.top + b.height - ((bytes - s.low) / (s.high - s.low)) * b.height;
}

// trace walks the tops of columns as steps: a column has one height.
function trace(c: CanvasRenderingContext2D, b: Box, s: Scale, xs: readonly number[], end: number, ys: readonly number[]): void {
  for (let i = 0; i < xs.length; i++) {
    const y = yOf(b, s, ys[i]!);
    c.lineTo(xOf(b, s, xs[i]!), y);
    c.lineTo(xOf(b, s, xs[i + 1] ?? end), y);
  }
}

function area(
  c: CanvasRenderingContext2D,
  b: Box,
  s: Scale,
  xs: readonly number[],
  end: number,
  ys: readonly number[],
  fill: string | CanvasPattern,
): void {
  if (xs.length === 0) return;
  c.beginPath();
  c.moveTo(xOf(b, s, xs[0]!), b.top + b.height);
  trace(c, b, s, xs, end, ys);
  c.lineTo(xOf(b, s, end), b.top + b.height);
  c.fillStyle = fill;
  c.fill();
}

function line(
  c: CanvasRenderingContext2D,
  b: Box,
  s: Scale,
  xs: readonly number[],
  end: number,
  ys: readonly number[],
  colour: string,
  width: number,
): void {
  c.beginPath();
  trace(c, b, s, xs, end, ys);
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.lineJoin = 'round';
  c.stroke();
}

// drawCurve draws the totals of a stretch; end is the right edge of its last column.
export function drawCurve(c: CanvasRenderingContext2D, b: Box, s: Scale, curve: Curve, end: number, ink: Ink, full: boolean): void {
  const xs = curve.x;
  area(c, b, s, xs, end, curve.reserved, ink.reservedFill);
  area(c, b, s, xs, end, curve.active, ink.liveFill);
  if (full && curve.pending_end.some((p) => p > 0)) {
    // What is freed but in use elsewhere is the upper part of what is active.
    c.save();
    c.beginPath();
    const free = curve.active.map((a, i) => a - curve.pending_end[i]!);
    c.moveTo(xOf(b, s, xs[0]!), yOf(b, s, free[0]!));
    trace(c, b, s, xs, end, curve.active);
    for (let i = xs.length - 1; i >= 0; i--) {
      const y = yOf(b, s, free[i]!);
      c.lineTo(xOf(b, s, xs[i + 1] ?? end), y);
      c.lineTo(xOf(b, s, xs[i]!), y);
    }
    c.fillStyle = hatch(c, ink.pending, null);
    c.fill();
    c.restore();
  }
  line(c, b, s, xs, end, curve.active, ink.live, full ? 1.25 : 1);
  line(c, b, s, xs, end, curve.reserved, ink.reserved, full ? 1.5 : 1);
}

// drawSizes draws the axis of bytes with its grid.
export function drawSizes(c: CanvasRenderingContext2D, b: Box, s: Scale, ink: Ink, n: number): void {
  c.font = `11px ${ink.sans}`;
  c.textAlign = 'right';
  c.textBaseline = 'middle';
  c.lineWidth = 1;
  for (const t of sizeTicks(s.low, s.high, n)) {
    const y = Math.round(yOf(b, s, t.at)) + 0.5;
    if (y < b.top - 1) continue;
    c.strokeStyle = ink.line;
    c.globalAlpha = 0.6;
    c.beginPath();
    c.moveTo(b.left, y);
    c.lineTo(b.left + b.width, y);
    c.stroke();
    c.globalAlpha = 1;
    c.fillStyle = ink.muted;
    c.fillText(t.text, b.left - 6, y);
  }
}

// drawLimits draws the limit of the process and the size of the device, where
// they are in view.
export function drawLimits(c: CanvasRenderingContext2D, b: Box, s: Scale, meta: Meta, ink: Ink): void {
  const { min_bytes: min, max_bytes: max } = meta.limit;
  if (max !== null) {
    if (min !== null && max > min) {
      const top = Math.max(b.top, yOf(b, s, max));
      const bottom = Math.min(b.top + b.height, yOf(b, s, min));
      if (bottom > top) {
        c.fillStyle = hatch(c, ink.limit, null, 8, 1);
        c.globalAlpha = 0.35;
        c.fillRect(b.left, top, b.width, bottom - top);
        c.globalAlpha = 1;
      }
    }
    rule(c, b, s, max, min !== null && min < max ? 'limit, at most' : 'limit', ink, ink.limit);
  }
  if (meta.device_bytes !== null) rule(c, b, s, meta.device_bytes, 'device', ink, ink.muted);
}

function rule(c: CanvasRenderingContext2D, b: Box, s: Scale, bytes: number, text: string, ink: Ink, colour: string): void {
  const y = Math.round(yOf(b, s, bytes)) + 0.5;
  if (y < b.top - 1 || y > b.top + b.height) return;
  c.strokeStyle = colour;
  c.lineWidth = 1.25;
  c.setLineDash([6, 4]);
  c.beginPath();
  c.moveTo(b.left, y);
  c.lineTo(b.left + b.width, y);
  c.stroke();
  c.setLineDash([]);
  label(c, `${text} ${tickSize(bytes)}`, b.left + b.width - 4, y - 3, ink, colour, 'right');
}

// label writes text that stays legible on whatever is under it.
export function label(
  c: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  ink: Ink,
  colour: string,
  align: CanvasTextAlign,
): void {
  c.font = `11px ${ink.sans}`;
  c.textAlign = align;
  c.textBaseline = 'bottom';
  c.lineWidth = 3;
  c.lineJoin = 'round';
  c.strokeStyle = ink.back;
  c.strokeText(text, x, y);
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

// drawFailure marks an out-of-memory event.
export function drawFailure(c: CanvasRenderingContext2D, b: Box, x: number, ink: Ink): void {
  c.strokeStyle = ink.oom;
  c.lineWidth = 1.25;
  c.beginPath();
  c.moveTo(x, b.top);
  c.lineTo(x, b.top + b.height);
  c.stroke();
  c.fillStyle = ink.oom;
  c.beginPath();
  c.moveTo(x - 5, b.top - 1);
  c.lineTo(x + 5, b.top - 1);
  c.lineTo(x, b.top + 8);
  c.fill();
}

// leastAxis is how far up an axis goes where nothing is reserved: the smallest
// segment there is.
export const leastAxis = 2 * 2 ** 20;

// ceiling is how far up the axis goes: the most that was reserved, or the limit
// if it is near enough not to flatten the curve.
export function ceiling(meta: Meta): number {
  const most = Math.max(meta.max_reserved_bytes, meta.max_live_bytes) || leastAxis;
  let top = most;
  for (const l of [meta.limit.max_bytes, meta.device_bytes]) {
    if (l !== null && l > top && l <= most * 1.35) top = l;
  }
  return top * 1.05;
}
