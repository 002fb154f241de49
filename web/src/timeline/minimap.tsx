// The mini-map: the curve of the whole run, with a window that can be moved and
// stretched.

import { useRef } from 'preact/hooks';
import { useDrawing } from '../draw/canvas';
import { ceiling, drawCurve, drawFailure, xOf, yOf, type Box } from '../draw/curve';
import { wholeCurve } from '../parts/curve';
import { meta } from '../state';
import { ink } from '../theme';
import { margin } from './overlay';
import { range } from '../route';
import { axis, fits, look, lookAtAll, marks, shown, whole } from './view';

const grip = 6;

function boxOf(width: number, height: number): Box {
  return { left: margin.left, top: 6, width: Math.max(1, width - margin.left - margin.right), height: height - 8 };
}

export function MiniMap() {
  const drag = useRef<{ kind: 'move' | 'left' | 'right'; x: number; from: number; to: number } | null>(null);
  const canvas = useDrawing((c, area) => {
    const m = meta.value.data;
    const curve = wholeCurve(axis.value).value.data;
    if (!m || !curve) return;
    const i = ink.value;
    const b = boxOf(area.width, area.height);
    const w = whole.value;
    const s = { ...w, high: ceiling(m) };
    drawCurve(c, b, s, curve, w.to, i, false);
    for (const e of m.ooms) {
      const x = axis.value === 'event' ? e + 0.5 : timeOf(curve, e, w.to);
      drawFailure(c, { ...b, height: b.height }, xOf(b, s, x), i);
    }
    // Where the filter chooses something, with its own height.
    const found = marks.value;
    if (found) {
      c.fillStyle = i.accent;
      const step = (w.to - w.from) / found.length;
      found.forEach((bytes, k) => {
        if (bytes === 0) return;
        const x = xOf(b, s, w.from + k * step);
        const high = Math.max(3, (bytes / s.high) * b.height);
        c.fillRect(x, b.top + b.height - high, Math.max(1, xOf(b, s, w.from + (k + 1) * step) - x), high);
      });
    }
    const r = range.value;
    if (r) {
      const at = (e: number) => xOf(b, s, axis.value === 'event' ? e : timeOf(curve, e, w.to));
      c.fillStyle = i.accent;
      c.globalAlpha = 0.25;
      c.fillRect(at(r.after + 1), b.top, Math.max(1, at(r.until + 1) - at(r.after + 1)), b.height);
      c.globalAlpha = 1;
    }
    const v = shown.value;
    const x0 = xOf(b, s, v.from);
    const x1 = Math.max(x0 + 2, xOf(b, s, v.to));
    const low = fits.value ? b.top + b.height : yOf(b, s, v.low);
    const high = fits.value ? b.top : yOf(b, s, v.high);
    c.fillStyle = i.back;
    c.globalAlpha = 0.62;
    c.fillRect(b.left, b.top - 2, x0 - b.left, b.height + 4);
    c.fillRect(x1, b.top - 2, b.left + b.width - x1, b.height + 4);
    c.globalAlpha = 1;
    c.strokeStyle = i.accent;
    c.lineWidth = 1.5;
    c.strokeRect(x0, high - 1.5, x1 - x0, low - high + 3);
    c.fillStyle = i.accent;
    for (const x of [x0, x1]) c.fillRect(x - 2, b.top + b.height / 2 - 8, 4, 16);
  });
  const at = (el: HTMLElement, clientX: number) => {
    const r = el.getBoundingClientRect();
    const b = boxOf(r.width, r.height);
    const w = whole.value;
    return w.from + ((clientX - r.left - b.left) / b.width) * (w.to - w.from);
  };
  const reach = (el: HTMLElement) => {
    const w = whole.value;
    return ((w.to - w.from) / boxOf(el.clientWidth, el.clientHeight).width) * grip;
  };
  return (
    <div
      class="minimap"
      aria-hidden="true"
      onPointerDown={(e) => {
        const el = e.currentTarget;
        el.setPointerCapture(e.pointerId);
        const x = at(el, e.clientX);
        const v = shown.value;
        const near = reach(el);
        let kind: 'move' | 'left' | 'right' = 'move';
        if (Math.abs(x - v.from) < near) kind = 'left';
        else if (Math.abs(x - v.to) < near) kind = 'right';
        else if (x < v.from || x > v.to) {
          const half = (v.to - v.from) / 2;
          look({ ...v, from: x - half, to: x + half });
        }
        drag.current = { kind, x, from: shown.value.from, to: shown.value.to };
      }}
      onPointerMove={(e) => {
        const d = drag.current;
        if (!d) return;
        const by = at(e.currentTarget, e.clientX) - d.x;
        const v = shown.value;
        if (d.kind === 'move') look({ ...v, from: d.from + by, to: d.to + by });
        else if (d.kind === 'left') look({ ...v, from: Math.min(d.from + by, d.to - 4), to: d.to });
        else look({ ...v, from: d.from, to: Math.max(d.to + by, d.from + 4) });
      }}
      onPointerUp={() => (drag.current = null)}
      onDblClick={lookAtAll}
    >
      <canvas ref={canvas} />
    </div>
  );
}

function timeOf(curve: { x: number[]; event: number[] }, e: number, end: number): number {
  const i = curve.event.findIndex((v) => v >= e);
  return i < 0 ? end : curve.x[i]!;
}
