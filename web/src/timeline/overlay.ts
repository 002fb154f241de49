// What lies over the rectangles: the band of small allocations, lines, marks,
// axes.

import { dots, short } from '../draw/canvas';
import { drawFailure, drawLimits, drawSizes, label, xOf, yOf, type Box, type Scale } from '../draw/curve';
import { count, span, ticks } from '../format';
import type { Ink } from '../theme';
import type { Curve, Meta } from '../types/view.gen';
import type { Range } from '../route';
import { columnFloats, indexMask, rectWords, type Layer, type Picture } from './picture';

export const margin = { left: 64, top: 12, right: 12, bottom: 22 };
export const strip = 15; // height of a row of steps or annotations
const deepest = 3;

// rows is how many rows of steps and annotations there are under the plot.
export function rows(m: Meta): number {
  const deep = m.ranges.reduce((d, r) => Math.max(d, r.depth + 1), 0);
  return (m.steps.length > 0 ? 1 : 0) + Math.min(deepest, deep);
}

export function plotBox(width: number, height: number, m: Meta): Box {
  const under = margin.bottom + rows(m) * strip;
  return {
    left: margin.left,
    top: margin.top,
    width: Math.max(1, width - margin.left - margin.right),
    height: Math.max(1, height - margin.top - under),
  };
}

// Sight is what an overlay is drawn from.
export interface Sight {
  box: Box;
  scale: Scale;
  layers: readonly Layer[];
  blocks: boolean; // not segments
  all: boolean; // nothing is left out
  asked: boolean; // with the line of requested bytes
  curve: Curve | null;
  curveEnd: number;
  meta: Meta;
  ink: Ink;
  axis: 'event' | 'time';
  xOfEvent: (event: number) => number | null; // in units of the axis
}

export function drawOverlay(c: CanvasRenderingContext2D, s: Sight): void {
  const { box: b, ink } = s;
  c.save();
  c.beginPath();
  c.rect(b.left, b.top, b.width, b.height);
  c.clip();
  for (const l of s.layers) {
    c.save();
    c.beginPath();
    c.rect(b.left + l.left, b.top, l.right - l.left, b.height);
    c.clip();
    band(c, s, l);
    reserved(c, s, l);
    c.restore();
  }
  if (s.blocks && s.all) {
    highest(c, s);
    if (s.asked) requested(c, s);
  }
  drawLimits(c, b, s.scale, s.meta, ink);
  c.restore();
  c.strokeStyle = ink.line;
  c.lineWidth = 1;
  c.strokeRect(b.left + 0.5, b.top + 0.5, b.width - 1, b.height - 1);
  axisX(c, s);
  bands(c, s);
}

export function drawGrid(c: CanvasRenderingContext2D, s: Sight): void {
  drawSizes(c, s.box, s.scale, s.ink, Math.max(2, Math.floor(s.box.height / 60)));
}

function columnRange(p: Picture, l: Layer): [number, number] {
  const first = Math.max(0, Math.floor((l.left - l.map.ox) / l.map.sx));
  const last = Math.min(p.columns, Math.ceil((l.right - l.map.ox) / l.map.sx));
  return [first, Math.max(first, last)];
}

// band is the sum of the allocations that are too small to draw, on top of the others.
function band(c: CanvasRenderingContext2D, s: Sight, l: Layer): void {
  const p = l.picture;
  const [first, last] = columnRange(p, l);
  const x = (i: number) => s.box.left + i * l.map.sx + l.map.ox;
  const y = (v: number) => s.box.top + s.box.height - (v * l.map.sy + l.map.oy);
  c.beginPath();
  for (let i = first; i < last; i++) {
    const top = y(p.column[i * columnFloats]!);
    if (i === first) c.moveTo(x(i), top);
    else c.lineTo(x(i), top);
    c.lineTo(x(i + 1), top);
  }
  for (let i = last - 1; i >= first; i--) {
    const bottom = y(p.column[i * columnFloats + 1]!);
    c.lineTo(x(i + 1), bottom);
    c.lineTo(x(i), bottom);
  }
  c.fillStyle = dots(c, s.ink.muted, s.ink.line);
  c.fill();
}

function reserved(c: CanvasRenderingContext2D, s: Sight, l: Layer): void {
  const p = l.picture;
  const [first, last] = columnRange(p, l);
  c.beginPath();
  for (let i = first; i < last; i++) {
    const y = s.box.top + s.box.height - (p.column[i * columnFloats + 2]! * l.map.sy + l.map.oy);
    const x = s.box.left + i * l.map.sx + l.map.ox;
    c.lineTo(x, y);
    c.lineTo(x + l.map.sx, y);
  }
  c.strokeStyle = s.ink.reserved;
  c.lineWidth = 1.5;
  c.stroke();
}

// requested is what was asked for: between it and the top lies what rounding costs.
function requested(c: CanvasRenderingContext2D, s: Sight): void {
  if (!s.curve || !s.meta.exact) return;
  c.strokeStyle = s.ink.waste;
  c.lineWidth = 1;
  c.setLineDash([2, 2]);
  line(c, s, s.curve, s.curve.requested_end);
  c.setLineDash([]);
}

// highest is how high live memory went within each column: blocks are drawn as
// they are at its end, and short ones are then not there any more.
function highest(c: CanvasRenderingContext2D, s: Sight): void {
  if (!s.curve) return;
  c.strokeStyle = s.ink.text;
  c.lineWidth = 1;
  c.globalAlpha = 0.6;
  line(c, s, s.curve, s.curve.active);
  c.globalAlpha = 1;
}

function line(c: CanvasRenderingContext2D, s: Sight, curve: Curve, bytes: readonly number[]): void {
  c.beginPath();
  for (let i = 0; i < curve.x.length; i++) {
    const y = yOf(s.box, s.scale, bytes[i]!);
    c.lineTo(xOf(s.box, s.scale, curve.x[i]!), y);
    c.lineTo(xOf(s.box, s.scale, curve.x[i + 1] ?? s.curveEnd), y);
  }
  c.stroke();
}

function axisX(c: CanvasRenderingContext2D, s: Sight): void {
  const { box: b, scale, ink } = s;
  c.font = `11px ${ink.sans}`;
  c.textBaseline = 'top';
  c.textAlign = 'center';
  const width = scale.to - scale.from;
  const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(width / 8 / 1e6))));
  for (const t of ticks(scale.from, scale.to, Math.max(2, Math.floor(b.width / 120)))) {
    if (s.axis === 'event' && t % 1 !== 0) continue;
    const x = xOf(b, scale, t);
    const text = s.axis === 'event' ? count(t) : `${(t / 1e6).toFixed(digits)} s`;
    const half = c.measureText(text).width / 2;
    c.strokeStyle = ink.line;
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, b.top + b.height);
    c.lineTo(Math.round(x) + 0.5, b.top + b.height + 4);
    c.stroke();
    c.fillStyle = ink.muted;
    c.fillText(text, Math.max(b.left + half - 8, Math.min(x, b.left + b.width - half)), b.top + b.height + 6);
  }
}

// A Bar is a step or an annotated range, under the plot, in pixels.
export interface Bar {
  x0: number;
  x1: number;
  y: number;
  texts: readonly string[]; // the longest that fits is written
  odd: boolean;
  name: string;
  range: Range;
  duration: number | null; // in microseconds
}

// bars lists those that are in view, from left to right and top to bottom.
export function bars(s: Sight): Bar[] {
  const { box: b, scale, meta: m } = s;
  const out: Bar[] = [];
  let top = b.top + b.height + margin.bottom;
  const add = (from: number | null, to: number | null, bar: Omit<Bar, 'x0' | 'x1'>) => {
    if (from === null || to === null || to < scale.from || from > scale.to) return;
    const x0 = Math.max(b.left, xOf(b, scale, from));
    out.push({ ...bar, x0, x1: Math.max(x0 + 1, Math.min(b.left + b.width, xOf(b, scale, to))) });
  };
  if (m.steps.length > 0) {
    for (const st of m.steps) {
      const name = `step ${st.number}`;
      add(s.xOfEvent(st.begin), s.xOfEvent(st.end), {
        y: top,
        texts: [name, String(st.number)],
        odd: st.number % 2 === 0,
        name,
        range: { after: st.begin - 1, until: st.end - 1 },
        duration: null,
      });
    }
    top += strip;
  }
  m.ranges.forEach((r, i) => {
    if (r.depth >= deepest) return;
    const times = r.begin_time !== null && r.end_time !== null && m.first_time !== null;
    const byTime = s.axis === 'time' && times;
    add(byTime ? r.begin_time! - m.first_time! : s.xOfEvent(r.begin_event), byTime ? r.end_time! - m.first_time! : s.xOfEvent(r.end_event), {
      y: top + r.depth * strip,
      texts: [r.name],
      odd: i % 2 === 0,
      name: r.name,
      range: { after: r.begin_event - 1, until: r.end_event - 1 },
      duration: times ? r.end_time! - r.begin_time! : null,
    });
  });
  return out;
}

function bands(c: CanvasRenderingContext2D, s: Sight): void {
  const { box: b, ink } = s;
  c.save();
  c.beginPath();
  c.rect(b.left, b.top + b.height + margin.bottom, b.width, rows(s.meta) * strip);
  c.clip();
  c.font = `10px ${ink.sans}`;
  c.textAlign = 'left';
  c.textBaseline = 'middle';
  for (const bar of bars(s)) {
    const width = bar.x1 - bar.x0;
    c.fillStyle = bar.odd ? ink.line : ink.panel;
    c.fillRect(bar.x0, bar.y, width, strip - 2);
    c.strokeStyle = ink.line;
    c.strokeRect(bar.x0 + 0.5, bar.y + 0.5, Math.max(0, width - 1), strip - 3);
    if (width < 10) continue;
    const text = bar.texts.find((t) => c.measureText(t).width <= width - 6) ?? (width < 24 ? '' : short(c, bar.texts[0]!, width - 6));
    if (text === '' || (bar.texts.length > 1 && text.endsWith('…'))) continue;
    c.fillStyle = ink.muted;
    c.fillText(text, bar.x0 + 3, bar.y + strip / 2 - 0.5);
  }
  c.restore();
}

// drawMarks draws what is selected: failures, the moment, the block, and what
// is under the pointer.
export function drawMarks(
  c: CanvasRenderingContext2D,
  s: Sight,
  marks: {
    moment: number | null;
    range: Range | null;
    block: number | null;
    hover: number | null;
    pointer: number | null;
    drag: [number, number] | null;
  },
): void {
  const { box: b, scale, ink } = s;
  c.save();
  c.beginPath();
  c.rect(b.left - 6, 0, b.width + 12, b.top + b.height);
  c.clip();
  for (const e of s.meta.ooms) {
    const x = s.xOfEvent(e + (s.axis === 'event' ? 0.5 : 0));
    if (x !== null && x >= scale.from && x <= scale.to) drawFailure(c, b, xOf(b, scale, x), ink);
  }
  if (marks.range && !marks.drag) selected(c, s, marks.range);
  if (marks.hover !== null) outline(c, s, marks.hover, ink.text, 1.25);
  if (marks.block !== null) outline(c, s, marks.block, ink.accent, 2);
  if (marks.moment !== null) {
    const at = s.xOfEvent(marks.moment + (s.axis === 'event' ? 0.5 : 0));
    if (at !== null && at >= scale.from && at <= scale.to) {
      const x = xOf(b, scale, at);
      c.strokeStyle = ink.accent;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(x, b.top);
      c.lineTo(x, b.top + b.height);
      c.stroke();
      const right = x > b.left + b.width - 120;
      label(c, `event ${count(marks.moment)}`, x + (right ? -5 : 5), b.top + b.height - 4, ink, ink.accent, right ? 'right' : 'left');
    }
  }
  if (marks.pointer !== null) {
    c.strokeStyle = ink.muted;
    c.lineWidth = 1;
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(Math.round(marks.pointer) + 0.5, b.top);
    c.lineTo(Math.round(marks.pointer) + 0.5, b.top + b.height);
    c.stroke();
    c.setLineDash([]);
  }
  if (marks.drag) {
    const [x0, x1] = marks.drag;
    c.fillStyle = ink.accent;
    c.globalAlpha = 0.15;
    c.fillRect(Math.min(x0, x1), b.top, Math.abs(x1 - x0), b.height);
    c.globalAlpha = 1;
    const width = (Math.abs(x1 - x0) / b.width) * (scale.to - scale.from);
    label(c, s.axis === 'event' ? `${count(width)} events` : span(width), (x0 + x1) / 2, b.top + 30, ink, ink.text, 'center');
  }
  c.restore();
}

// selected draws the range: its ends, and a ground that lets the blocks through.
function selected(c: CanvasRenderingContext2D, s: Sight, r: Range): void {
  const { box: b, scale, ink } = s;
  const from = s.xOfEvent(r.after + 1);
  const to = s.xOfEvent(r.until + 1);
  if (from === null || to === null || to < scale.from || from > scale.to) return;
  const x0 = Math.max(b.left, xOf(b, scale, from));
  const x1 = Math.max(x0 + 1, Math.min(b.left + b.width, xOf(b, scale, to)));
  c.fillStyle = ink.accent;
  c.globalAlpha = 0.14;
  c.fillRect(x0, b.top, x1 - x0, b.height);
  c.globalAlpha = 1;
  c.strokeStyle = ink.accent;
  c.lineWidth = 1.5;
  for (const [x, at] of [
    [x0, from],
    [x1, to],
  ] as const) {
    if (at < scale.from || at > scale.to) continue;
    c.beginPath();
    c.moveTo(x, b.top);
    c.lineTo(x, b.top + b.height);
    c.stroke();
  }
}

// drawLit lets the blocks of one colour stand out: the others fade.
export function drawLit(c: CanvasRenderingContext2D, s: Sight, index: number, colour: string): void {
  const { box: b } = s;
  c.save();
  c.beginPath();
  c.rect(b.left, b.top, b.width, b.height);
  c.clip();
  c.globalAlpha = 0.72;
  c.fillStyle = s.ink.back;
  c.fillRect(b.left, b.top, b.width, b.height);
  c.globalAlpha = 1;
  c.fillStyle = colour;
  for (const l of s.layers) {
    const { picture: p, map: m } = l;
    for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
      if ((p.words[o + 5]! & indexMask) !== index) continue;
      const x0 = Math.max(l.left, p.floats[o]! * m.sx + m.ox);
      const x1 = Math.min(l.right, p.floats[o + 1]! * m.sx + m.ox);
      if (x1 <= x0) continue;
      const y0 = p.floats[o + 2]! * m.sy + m.oy;
      const y1 = p.floats[o + 3]! * m.sy + m.oy;
      c.fillRect(b.left + x0, b.top + b.height - y1, Math.max(0.5, x1 - x0), Math.max(0.5, y1 - y0));
    }
  }
  c.restore();
}

// outline draws round all rectangles of an allocation.
function outline(c: CanvasRenderingContext2D, s: Sight, alloc: number, colour: string, width: number): void {
  c.strokeStyle = colour;
  c.lineWidth = width;
  for (const l of s.layers) {
    const { picture: p, map: m } = l;
    for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
      if (p.words[o + 4] !== alloc) continue;
      const x0 = Math.max(l.left, p.floats[o]! * m.sx + m.ox);
      const x1 = Math.min(l.right, p.floats[o + 1]! * m.sx + m.ox);
      if (x1 <= x0) continue;
      const y0 = p.floats[o + 2]! * m.sy + m.oy;
      const y1 = p.floats[o + 3]! * m.sy + m.oy;
      c.strokeRect(s.box.left + x0, s.box.top + s.box.height - y1, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
    }
  }
}
