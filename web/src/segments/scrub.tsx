// The slider: the curve of the run with the moment on it.

import { useDrawing } from '../draw/canvas';
import { ceiling, drawCurve, drawFailure, xOf, type Box } from '../draw/curve';
import { count } from '../format';
import { wholeCurve } from '../parts/curve';
import { meta, moment, select } from '../state';
import { ink } from '../theme';

const inset = 8; // half of the slider's thumb

function boxOf(width: number, height: number): Box {
  return { left: inset, top: 2, width: Math.max(1, width - 2 * inset), height: height - 4 };
}

export function Scrub() {
  const canvas = useDrawing((c, area) => {
    const m = meta.value.data;
    const curve = wholeCurve().value.data;
    if (!m || !curve) return;
    const i = ink.value;
    const b = boxOf(area.width, area.height);
    const s = { from: 0, to: Math.max(1, m.events), low: 0, high: ceiling(m) };
    drawCurve(c, b, s, curve, m.events, i, false);
    for (const e of m.ooms) drawFailure(c, b, xOf(b, s, e + 0.5), i);
    const at = moment.value;
    if (at === null) return;
    const x = xOf(b, s, at + 0.5);
    c.strokeStyle = i.accent;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, area.height);
    c.stroke();
  });
  const m = meta.value.data!;
  const at = moment.value ?? -1;
  return (
    <div class="scrub">
      <div
        class="scrub-curve"
        aria-hidden="true"
        onPointerDown={(e) => {
          e.preventDefault();
          e.currentTarget.setPointerCapture(e.pointerId);
          seek(e.currentTarget, e.clientX, m.events);
        }}
        onPointerMove={(e) => {
          if (e.currentTarget.hasPointerCapture(e.pointerId)) seek(e.currentTarget, e.clientX, m.events);
        }}
      >
        <canvas ref={canvas} />
      </div>
      <input
        type="range"
        name="moment"
        min={-1}
        max={m.events - 1}
        step={1}
        value={at}
        aria-label="Moment"
        aria-valuetext={at < 0 ? 'before the first event' : `event ${count(at)} of ${count(m.events)}`}
        onInput={(e) => select(Number(e.currentTarget.value), 'replace')}
      />
    </div>
  );
}

// seek selects the event under the pointer.
function seek(box: Element, x: number, events: number): void {
  const r = box.getBoundingClientRect();
  const b = boxOf(r.width, r.height);
  select(Math.max(0, Math.min(events - 1, Math.floor(((x - r.left - b.left) / b.width) * events))), 'replace');
}
