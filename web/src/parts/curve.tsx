// The memory curve of the whole run, as the overview shows it.

import { computed, useSignal } from '@preact/signals';
import { ceiling, drawCurve, drawFailure, drawLimits, drawSizes, xOf, yOf, type Box, type Scale } from '../draw/curve';
import { useDrawing } from '../draw/canvas';
import { count, exact, size, ticks } from '../format';
import { useMouse } from '../keys';
import { event, number, place, range, run, show } from '../route';
import { load, meta, moment, select, selectRange } from '../state';
import { ink } from '../theme';
import type { Curve, FixCurve, Meta } from '../types/view.gen';
import { Trouble, Wait } from './basic';
import { RangePanel } from './range';

// columns of the curve: enough for a wide screen, and one answer for all widths.
const columns = 1200;

export function wholeCurve(x: 'event' | 'time' = 'event') {
  return load<Curve>('curve', { run: run.value, n: columns, x });
}

// fixShown is the fix of explain whose curve is drawn over the recorded one.
export const fixShown = computed(() => number(place.value.params['fix']));

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
  const fix = fixShown.value;
  const after = fix === null ? {} : load<FixCurve>('fix', { run: run.value, fix }).value;
  return (
    <>
      {after.error && <Trouble>{after.error}</Trouble>}
      <Chart curve={got.data} m={m} after={after.data ?? null} />
    </>
  );
}

// drawAfter draws the curve of a changed program.
function drawAfter(c: CanvasRenderingContext2D, b: Box, s: Scale, f: FixCurve, colour: string): void {
  c.strokeStyle = colour;
  for (const [ys, dash] of [
    [f.active_bytes, []],
    [f.reserved_bytes, [6, 3]],
  ] as const) {
    c.beginPath();
    f.event.forEach((e, i) => {
      c.lineTo(xOf(b, s, i > 0 ? f.event[i - 1]! + 1 : 0), yOf(b, s, ys[i]!));
      c.lineTo(xOf(b, s, e + 1), yOf(b, s, ys[i]!));
    });
    c.lineWidth = 1.75;
    c.setLineDash([...dash]);
    c.stroke();
  }
  c.setLineDash([]);
}

function Chart({ curve, m, after }: { curve: Curve; m: Meta; after: FixCurve | null }) {
  useMouse('Overview', [
    ['Drag', 'Select a range of the curve'],
    ['Click', 'Select the moment'],
    ['Double click', 'Open the timeline there'],
  ]);
  const over = useSignal<Column | null>(null);
  const drag = useSignal<{ from: number; to: number } | null>(null); // in pixels
  const canvas = useDrawing((c, area) => {
    const i = ink.value;
    const b = boxOf(area.width, area.height);
    const s = { from: 0, to: Math.max(1, m.events), low: 0, high: ceiling(m) };
    drawSizes(c, b, s, i, Math.max(2, Math.floor(b.height / 45)));
    drawCurve(c, b, s, curve, m.events, i, true);
    if (after) drawAfter(c, b, s, after, i.good);
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
    const chosen = range.value && { from: xOf(b, s, range.value.after + 1), to: xOf(b, s, range.value.until + 1) };
    const d = drag.value ?? chosen;
    if (d) {
      c.fillStyle = i.accent;
      c.globalAlpha = 0.18;
      c.fillRect(Math.min(d.from, d.to), b.top, Math.max(1, Math.abs(d.to - d.from)), b.height);
      c.globalAlpha = 1;
    }
    if (over.value !== null) {
      c.strokeStyle = i.muted;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(over.value.x, b.top);
      c.lineTo(over.value.x, b.top + b.height);
      c.stroke();
    }
  }, [after]);
  // columnAt is the column of the curve at a place, and its last event, which is
  // the one that the reading and a click mean.
  const columnAt = (el: HTMLElement, clientX: number): Column | null => {
    const x = clientX - el.getBoundingClientRect().left - el.clientLeft;
    const b = boxOf(el.clientWidth, el.clientHeight);
    const part = (x - b.left) / b.width;
    if (part < 0 || part > 1) return null;
    const i = Math.min(curve.x.length - 1, Math.floor(part * curve.x.length));
    return { x, i, part, event: curve.event[i]!, before: i > 0 ? curve.event[i - 1]! : -1 };
  };
  return (
    <>
      <div
        class="curve"
        role="img"
        data-after={after ? Math.max(...after.reserved_bytes) : undefined}
        aria-label={`Memory over ${count(m.events)} events. Reserved at most ${size(m.max_reserved_bytes)}, active at most ${size(m.max_live_bytes)}.`}
        onPointerDown={(e) => {
          const at = columnAt(e.currentTarget, e.clientX);
          if (!at || e.button !== 0) return;
          e.currentTarget.setPointerCapture(e.pointerId);
          drag.value = { from: at.x, to: at.x };
        }}
        onPointerMove={(e) => {
          const at = columnAt(e.currentTarget, e.clientX);
          over.value = at;
          if (drag.value && at) drag.value = { ...drag.value, to: at.x };
        }}
        onPointerLeave={() => (over.value = null)}
        onPointerUp={(e) => {
          const d = drag.value;
          const at = columnAt(e.currentTarget, e.clientX);
          drag.value = null;
          if (d && Math.abs(d.to - d.from) >= clickSlop) {
            const left = e.currentTarget.getBoundingClientRect().left + e.currentTarget.clientLeft;
            const first = columnAt(e.currentTarget, left + Math.min(d.from, d.to));
            const last = columnAt(e.currentTarget, left + Math.max(d.from, d.to));
            if (first && last) selectRange({ after: first.before, until: last.event });
          } else if (d && at) select(at.event);
        }}
        onDblClick={(e) => {
          const at = columnAt(e.currentTarget, e.clientX);
          if (at) show('timeline', { event: at.event });
        }}
      >
        <canvas ref={canvas} />
        {over.value && !drag.value && <Reading curve={curve} at={over.value} />}
      </div>
      <RangePanel />
    </>
  );
}

// Column is a column of the curve under the pointer.
interface Column {
  x: number; // in pixels
  i: number;
  part: number;
  event: number; // its last
  before: number; // the last one before it
}

const clickSlop = 4; // pixels that a click may move

function Reading({ curve, at }: { curve: Curve; at: Column }) {
  const { i } = at;
  const rows: [string, number][] = [
    ['reserved', curve.reserved_end[i]!],
    ['active', curve.live_end[i]!],
    ['requested', curve.requested_end[i]!],
    ['pending', curve.pending_end[i]!],
  ];
  const events = at.event - at.before;
  return (
    <div class={'reading ' + (at.part > 0.5 ? 'at-left' : 'at-right')} data-event={at.event}>
      <strong>event {count(at.event)}</strong>
      {rows.map(([name, n]) =>
        name === 'pending' && n === 0 ? null : (
          <span title={exact(n)}>
            {name} {size(n)}
          </span>
        ),
      )}
      {events > 1 && curve.active[i]! > curve.live_end[i]! && (
        <span class="muted">
          highest of {count(events)} events {size(curve.active[i]!)}
        </span>
      )}
    </div>
  );
}
