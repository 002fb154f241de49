// The memory curve of the whole run, as the overview shows it.

import { useSignal } from '@preact/signals';
import { ceiling, drawCurve, drawFailure, drawLimits, drawSizes, xOf, yOf, type Box } from '../draw/curve';
import { useDrawing } from '../draw/canvas';
import { count, exact, size, ticks } from '../format';
import { event, run, show } from '../route';
import { load, meta, moment, select } from '../state';
import { ink } from '../theme';
import type { Curve, Meta } from '../types/view.gen';
import { Trouble, Wait } from './basic';

// columns of the curve: enough for a wide screen, and one answer for all widths.
const columns = 1200;

export function wholeCurve(x: 'event' | 'time' = 'event') {
  return load<Curve>('curve', { run: run.value, n: columns, x });
}

function boxOf(width: number, height: number): Box {
  return { left: 62, top: 12, width: width - 62 - 10, height: height - 12 - 24 };
}

export function CurvePanel() {
  const got = wholeCurve().value;
  const m = meta.value.data;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  if (!got.data || !m) {
    return (
      <div class="curve">
        <Wait>Drawing the curve</Wait>
      </div>
    );
  }
  return <Chart curve={got.data} m={m} />;
}

function Chart({ curve, m }: { curve: Curve; m: Meta }) {
  const over = useSignal<number | null>(null);
  const canvas = useDrawing((c, area) => {
    const i = ink.value;
    const b = boxOf(area.width, area.height);
    const s = { from: 0, to: Math.max(1, m.events), low: 0, high: ceiling(m) };
    drawSizes(c, b, s, i, Math.max(2, Math.floor(b.height / 45)));
    drawCurve(c, b, s, curve, m.events, i, true);
    drawLimits(c, b, s, m, i);
    c.textAlign = 'center';
    c.textBaseline = 'top';
    c.font = `11px ${i.sans}`;
    for (const t of ticks(0, m.events, Math.max(2, Math.floor(b.width / 110)))) {
      if (t % 1 !== 0) continue;
      const x = xOf(b, s, t);
      c.fillStyle = i.muted;
      c.fillText(t === 0 ? 'event 0' : count(t), Math.min(x, b.left + b.width - 22), b.top + b.height + 6);
    }
    for (const e of m.ooms) drawFailure(c, b, xOf(b, s, e + 0.5), i);
    const now = moment.value;
    if (now !== null && event.value !== null) {
      const x = xOf(b, s, now + 0.5);
      c.strokeStyle = i.accent;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(x, b.top);
      c.lineTo(x, b.top + b.height);
      c.stroke();
    }
    const peak = m.peak.allocated;
    if (peak) {
      c.fillStyle = i.live;
      c.strokeStyle = i.back;
      c.lineWidth = 1.5;
      c.beginPath();
      c.arc(xOf(b, s, peak.event + 0.5), yOf(b, s, peak.bytes), 4, 0, 7);
      c.fill();
      c.stroke();
    }
    if (over.value !== null) {
      c.strokeStyle = i.muted;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(over.value, b.top);
      c.lineTo(over.value, b.top + b.height);
      c.stroke();
    }
  });
  const eventAt = (el: HTMLElement, clientX: number) => {
    const r = el.getBoundingClientRect();
    const b = boxOf(r.width, r.height);
    const part = (clientX - r.left - b.left) / b.width;
    return part < 0 || part > 1 ? null : Math.min(m.events - 1, Math.floor(part * m.events));
  };
  return (
    <div
      class="curve"
      role="img"
      aria-label={`Memory over ${count(m.events)} events. Reserved at most ${size(m.max_reserved_bytes)}, active at most ${size(m.max_live_bytes)}.`}
      onMouseMove={(e) =>
        (over.value = eventAt(e.currentTarget, e.clientX) === null ? null : e.clientX - e.currentTarget.getBoundingClientRect().left)
      }
      onMouseLeave={() => (over.value = null)}
      onClick={(e) => {
        const at = eventAt(e.currentTarget, e.clientX);
        if (at !== null) select(at);
      }}
      onDblClick={(e) => {
        const at = eventAt(e.currentTarget, e.clientX);
        if (at !== null) show('timeline', { event: at });
      }}
    >
      <canvas ref={canvas} />
      {over.value !== null && <Reading curve={curve} x={over.value} events={m.events} />}
    </div>
  );
}

function Reading({ curve, x, events }: { curve: Curve; x: number; events: number }) {
  const width = document.querySelector('.curve')?.clientWidth ?? 0;
  const b = boxOf(width, 100);
  const part = Math.max(0, Math.min(1, (x - b.left) / b.width));
  const at = part * events;
  let i = curve.x.findIndex((v) => v > at) - 1;
  if (i < 0) i = curve.x.length - 1;
  const rows: [string, number][] = [
    ['reserved', curve.reserved[i]!],
    ['active', curve.active[i]!],
    ['requested', curve.requested[i]!],
    ['pending', curve.pending_end[i]!],
  ];
  return (
    <div class={'reading ' + (part > 0.5 ? 'at-left' : 'at-right')}>
      <strong>event {count(at)}</strong>
      {rows.map(([name, n]) =>
        name === 'pending' && n === 0 ? null : (
          <span title={exact(n)}>
            {name} {size(n)}
          </span>
        ),
      )}
    </div>
  );
}
