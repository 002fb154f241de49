// The step, or the generation: what is allocated, by purpose, under what is
// reserved, with the phases.

import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { useDrawing } from '../draw/canvas';
import { drawSizes, label, xOf, yOf, type Box, type Scale } from '../draw/curve';
import { exact, size, tickSize } from '../format';
import { colourOf } from '../palette';
import { ink, theme } from '../theme';
import { stacking } from './stacking';
import { phaseText, type Outcome } from './words';
import type { Span, Timeline } from '../types/plan.gen';

const left = 66;

function boxOf(width: number, height: number): Box {
  return { left, top: 14, width: Math.max(1, width - left - 10), height: Math.max(1, height - 14 - 24) };
}

export function phaseAt(phases: readonly Span[], x: number): Span | null {
  return phases.find((p) => x >= p.begin && x < p.end) ?? null;
}

export function Step({ a, t }: { a: Outcome; t: Timeline }) {
  const over = useSignal<{ x: number; piece: number; right: boolean } | null>(null);
  const stack = useMemo(() => stacking(t.components), [t]);
  const n = t.allocated_bytes.length;
  const peak = t.allocated_bytes.indexOf(a.peak_allocated_bytes);
  const canvas = useDrawing(
    (c, area) => {
      const i = ink.value;
      const b = boxOf(area.width, area.height);
      const limit = a.available_bytes;
      const top = limit !== null && limit > a.peak_reserved_bytes && limit <= a.peak_reserved_bytes * 1.35 ? limit : a.peak_reserved_bytes;
      const s: Scale = { from: 0, to: Math.max(1, n), low: 0, high: Math.max(1, top) * 1.06 };
      drawSizes(c, b, s, i, Math.max(2, Math.floor(b.height / 45)));
      ground(c, b, s, t.reserved_bytes, null, i.reservedFill);
      let below: number[] | null = null;
      for (const part of stack) {
        const above: number[] = part.bytes.map((y, k) => y + (below?.[k] ?? 0));
        ground(c, b, s, above, below, colourOf(part.name, theme.value));
        below = above;
      }
      outline(c, b, s, t.reserved_bytes, i.reserved, 1.5);
      phases(c, b, s, t.phases);
      if (limit !== null) rule(c, b, s, limit);
      if (peak >= 0) dot(c, xOf(b, s, peak + 0.5), yOf(b, s, a.peak_allocated_bytes));
      if (over.value) {
        c.strokeStyle = i.text;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(over.value.x, b.top);
        c.lineTo(over.value.x, b.top + b.height);
        c.stroke();
      }
    },
    [a, t],
  );
  return (
    <div
      class="curve plan-step"
      role="img"
      aria-label={`${t.phases.map((p) => p.name).join(', ')}: allocated at most ${size(a.peak_allocated_bytes)}, in ${phaseText(a.binding_phase, a.binding_step)}; reserved at most ${size(a.peak_reserved_bytes)}.`}
      data-pieces={n}
      onMouseMove={(e) => {
        const r = e.currentTarget.getBoundingClientRect();
        const b = boxOf(r.width, r.height);
        const where = (e.clientX - r.left - b.left) / b.width;
        const piece = Math.min(n - 1, Math.floor(where * n));
        over.value = where < 0 || where > 1 ? null : { x: e.clientX - r.left, piece, right: where < 0.5 };
      }}
      onMouseLeave={() => (over.value = null)}
    >
      <canvas ref={canvas} />
      {over.value && <Reading t={t} stack={stack} piece={over.value.piece} right={over.value.right} />}
    </div>
  );
}

function steps(c: CanvasRenderingContext2D, b: Box, s: Scale, ys: readonly number[]): void {
  ys.forEach((bytes, i) => {
    const y = yOf(b, s, bytes);
    c.lineTo(xOf(b, s, i), y);
    c.lineTo(xOf(b, s, i + 1), y);
  });
}

function ground(c: CanvasRenderingContext2D, b: Box, s: Scale, top: readonly number[], bottom: readonly number[] | null, fill: string): void {
  c.beginPath();
  steps(c, b, s, top);
  for (let i = top.length - 1; i >= 0; i--) {
    const y = yOf(b, s, bottom?.[i] ?? 0);
    c.lineTo(xOf(b, s, i + 1), y);
    c.lineTo(xOf(b, s, i), y);
  }
  c.fillStyle = fill;
  c.fill();
}

function outline(c: CanvasRenderingContext2D, b: Box, s: Scale, ys: readonly number[], colour: string, width: number): void {
  c.beginPath();
  steps(c, b, s, ys);
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.lineJoin = 'round';
  c.stroke();
}

// phases are named under the axis, where there is room.
function phases(c: CanvasRenderingContext2D, b: Box, s: Scale, list: readonly Span[]): void {
  const i = ink.value;
  c.font = `11px ${i.sans}`;
  c.textAlign = 'left';
  c.textBaseline = 'top';
  let taken = b.left; // up to where there are names
  list.forEach((p) => {
    const x = Math.round(xOf(b, s, p.begin)) + 0.5;
    c.strokeStyle = i.muted;
    c.lineWidth = 1;
    c.setLineDash([2, 3]);
    c.beginPath();
    c.moveTo(x, b.top);
    c.lineTo(x, b.top + b.height + 4);
    c.stroke();
    c.setLineDash([]);
    const width = c.measureText(p.name).width + 6;
    // A short one is named before its end, if nothing else is there.
    const from = Math.min(x, xOf(b, s, p.end) - width);
    if (from < taken) return;
    taken = from + width;
    c.fillStyle = i.muted;
    c.fillText(p.name, from + 3, b.top + b.height + 7);
  });
}

function rule(c: CanvasRenderingContext2D, b: Box, s: Scale, bytes: number): void {
  const i = ink.value;
  const y = Math.round(yOf(b, s, bytes)) + 0.5;
  if (y < b.top - 1) return;
  c.strokeStyle = i.limit;
  c.lineWidth = 1.5;
  c.setLineDash([6, 4]);
  c.beginPath();
  c.moveTo(b.left, y);
  c.lineTo(b.left + b.width, y);
  c.stroke();
  c.setLineDash([]);
  label(c, `room ${tickSize(bytes)}`, b.left + b.width - 4, y - 3, i, i.limit, 'right');
}

function dot(c: CanvasRenderingContext2D, x: number, y: number): void {
  const i = ink.value;
  c.fillStyle = i.text;
  c.strokeStyle = i.back;
  c.lineWidth = 1.5;
  c.beginPath();
  c.arc(x, y, 4, 0, 7);
  c.fill();
  c.stroke();
}

function Reading({ t, stack, piece, right }: { t: Timeline; stack: Timeline['components']; piece: number; right: boolean }) {
  const phase = phaseAt(t.phases, piece);
  return (
    <div class={'reading ' + (right ? 'at-right' : 'at-left')}>
      <strong>{phase ? phaseText(phase.name, phase.name === 'decode' ? 0 : phase.step) : ''}</strong>
      <span title={exact(t.reserved_bytes[piece]!)}>reserved {size(t.reserved_bytes[piece]!)}</span>
      <span title={exact(t.allocated_bytes[piece]!)}>allocated {size(t.allocated_bytes[piece]!)}</span>
      {[...stack].reverse().map((part) =>
        part.bytes[piece]! < 1 << 20 ? null : (
          <span class="reading-row">
            <Square name={part.name} />
            <span class="num">{size(part.bytes[piece]!)}</span> {part.name}
          </span>
        ),
      )}
    </div>
  );
}

// Square is the colour of a purpose, beside its name.
export function Square({ name }: { name: string }) {
  return (
    <svg class="square" width="11" height="11" viewBox="0 0 11 11" aria-hidden="true">
      <rect width="11" height="11" rx="2" fill={colourOf(name, theme.value)} />
    </svg>
  );
}
