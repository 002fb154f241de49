// Curves of several runs over each other, on one axis.

import { useSignal } from '@preact/signals';
import { useDrawing } from '../draw/canvas';
import { drawFailure, drawSizes, label, leastAxis, xOf, yOf, type Box, type Scale } from '../draw/curve';
import { exact, size, tickSize, type Tick } from '../format';
import { ink } from '../theme';

// A Line has the height ys[i] from xs[i] to the next one, the last to end.
export interface Line {
  name: string;
  colour: string;
  dash: readonly number[];
  xs: readonly number[];
  ys: readonly number[];
  end: number;
  group: number; // lines of one group stand out together
  thin?: boolean;
  fails?: boolean; // it ends there with a failure
}

export interface Chart {
  lines: readonly Line[];
  ground?: { xs: readonly number[]; ys: readonly number[]; end: number }; // what is drawn as an area
  from: number;
  to: number;
  rules: readonly { bytes: number; text: string }[];
  failures: readonly number[];
  ticks: (n: number) => Tick[];
  place: (x: number) => string; // a place of the axis in words
  label: string;
}

const left = 66;

function boxOf(width: number, height: number): Box {
  return { left, top: 12, width: Math.max(1, width - left - 10), height: Math.max(1, height - 12 - 24) };
}

// valueAt is the height of a line at a place, null beside it.
function valueAt(l: { xs: readonly number[]; ys: readonly number[]; end: number }, x: number): number | null {
  if (l.xs.length === 0 || x < l.xs[0]! || x > l.end) return null;
  let low = 0;
  let high = l.xs.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (l.xs[mid]! <= x) low = mid;
    else high = mid - 1;
  }
  return l.ys[low]!;
}

function walk(c: CanvasRenderingContext2D, b: Box, s: Scale, l: { xs: readonly number[]; ys: readonly number[]; end: number }): void {
  l.xs.forEach((x, i) => {
    const y = yOf(b, s, l.ys[i]!);
    c.lineTo(xOf(b, s, x), y);
    c.lineTo(xOf(b, s, l.xs[i + 1] ?? l.end), y);
  });
}

function ceiling(chart: Chart): number {
  let most = 0;
  for (const l of [...chart.lines, ...(chart.ground ? [chart.ground] : [])]) for (const y of l.ys) most = Math.max(most, y);
  if (most === 0) most = leastAxis;
  let top = most;
  for (const r of chart.rules) if (r.bytes > top && r.bytes <= most * 1.35) top = r.bytes;
  return top * 1.05;
}

const clickSlop = 4; // pixels that a click may move
const hoverSlop = 8; // and that the pointer may be beside a line

// under is the group of the line that is nearest to the pointer.
function under(el: HTMLElement, chart: Chart, at: number, clientY: number): number | null {
  const b = boxOf(el.clientWidth, el.clientHeight);
  const s: Scale = { from: chart.from, to: chart.to, low: 0, high: ceiling(chart) };
  const y = clientY - el.getBoundingClientRect().top - el.clientTop;
  let best: { group: number; away: number } | null = null;
  for (const l of chart.lines) {
    const value = valueAt(l, at);
    if (value === null) continue;
    const away = Math.abs(yOf(b, s, value) - y);
    if (away <= hoverSlop && (!best || away < best.away)) best = { group: l.group, away };
  }
  return best?.group ?? null;
}

export function Lines({
  chart,
  picked,
  onClick,
  onDrag,
  onHover,
  chosen,
}: {
  chart: Chart;
  picked: number | null;
  onClick?: (x: number) => void;
  onDrag?: (from: number, to: number) => void;
  onHover?: (group: number | null) => void; // of the line under the pointer
  chosen?: { from: number; to: number } | null; // what a drag selected
}) {
  const drag = useSignal<{ x: number; from: number; to: number; moved: boolean } | null>(null);
  const over = useSignal<{ x: number; at: number; right: boolean } | null>(null);
  const canvas = useDrawing(
    (c, area) => {
      const i = ink.value;
      const b = boxOf(area.width, area.height);
      const s: Scale = { from: chart.from, to: Math.max(chart.to, chart.from + 1e-9), low: 0, high: ceiling(chart) };
      drawSizes(c, b, s, i, Math.max(2, Math.floor(b.height / 45)));
      c.textAlign = 'center';
      c.textBaseline = 'top';
      c.font = `11px ${i.sans}`;
      c.fillStyle = i.muted;
      for (const t of chart.ticks(Math.max(2, Math.floor(b.width / 110)))) {
        c.fillText(t.text, Math.max(b.left + 16, Math.min(xOf(b, s, t.at), b.left + b.width - 22)), b.top + b.height + 6);
      }
      c.save();
      c.beginPath();
      c.rect(b.left - 8, 0, b.width + 16, b.top + b.height + 6); // marks at the ends have room
      c.clip();
      if (chart.ground && chart.ground.xs.length > 0) {
        c.beginPath();
        c.moveTo(xOf(b, s, chart.ground.xs[0]!), yOf(b, s, 0));
        walk(c, b, s, chart.ground);
        c.lineTo(xOf(b, s, chart.ground.end), yOf(b, s, 0));
        c.fillStyle = i.liveFill;
        c.fill();
      }
      for (const f of chart.failures) drawFailure(c, b, xOf(b, s, f), i);
      // The one that is picked comes last, on top of the others.
      const order = [...chart.lines].sort((x, y) => Number(x.group === picked) - Number(y.group === picked));
      for (const l of order) drawLine(c, b, s, l, picked, i.back);
      for (const r of chart.rules) drawRule(c, b, s, r.bytes, r.text);
      const selected = drag.value?.moved ? drag.value : chosen;
      if (selected) {
        const [x0, x1] = [xOf(b, s, Math.min(selected.from, selected.to)), xOf(b, s, Math.max(selected.from, selected.to))];
        c.fillStyle = i.accent;
        c.globalAlpha = 0.18;
        c.fillRect(x0, b.top, Math.max(1, x1 - x0), b.height);
        c.globalAlpha = 1;
      }
      if (over.value) {
        c.strokeStyle = i.muted;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(over.value.x, b.top);
        c.lineTo(over.value.x, b.top + b.height);
        c.stroke();
      }
      c.restore();
    },
    [chart, picked, chosen?.from, chosen?.to],
  );
  const at = (el: HTMLElement, clientX: number): { x: number; at: number; right: boolean } | null => {
    const x = clientX - el.getBoundingClientRect().left - el.clientLeft;
    const b = boxOf(el.clientWidth, el.clientHeight);
    const part = (x - b.left) / b.width;
    return part < 0 || part > 1 ? null : { x, at: chart.from + part * (chart.to - chart.from), right: part < 0.5 };
  };
  return (
    <div
      class="curve lines"
      role="img"
      aria-label={chart.label}
      data-lines={chart.lines.length}
      data-ends={chart.lines.map((l) => l.end).join(' ')}
      onPointerDown={(e) => {
        const found = at(e.currentTarget, e.clientX);
        if (!found || e.button !== 0) return;
        e.currentTarget.setPointerCapture(e.pointerId);
        drag.value = { x: found.x, from: found.at, to: found.at, moved: false };
      }}
      onPointerMove={(e) => {
        const found = at(e.currentTarget, e.clientX);
        const d = drag.value;
        over.value = found;
        if (onHover) onHover(found && under(e.currentTarget, chart, found.at, e.clientY));
        if (d && found && onDrag) drag.value = { ...d, to: found.at, moved: d.moved || Math.abs(found.x - d.x) >= clickSlop };
      }}
      onPointerLeave={() => {
        over.value = null;
        onHover?.(null);
      }}
      onPointerUp={(e) => {
        const d = drag.value;
        const found = at(e.currentTarget, e.clientX);
        drag.value = null;
        if (d?.moved) onDrag?.(d.from, d.to);
        else if (d && found) onClick?.(found.at);
      }}
    >
      <canvas ref={canvas} />
      {over.value && <Reading chart={chart} at={over.value.at} right={over.value.right} />}
    </div>
  );
}

function drawLine(c: CanvasRenderingContext2D, b: Box, s: Scale, l: Line, picked: number | null, back: string): void {
  const on = picked === l.group;
  c.globalAlpha = picked !== null && !on ? 0.35 : 1;
  c.beginPath();
  walk(c, b, s, l);
  c.lineJoin = 'round';
  if (on) {
    c.strokeStyle = back;
    c.lineWidth = 5;
    c.stroke();
  }
  c.strokeStyle = l.colour;
  c.lineWidth = on ? 2.75 : l.thin ? 1.25 : 1.75;
  c.setLineDash([...l.dash]);
  c.stroke();
  c.setLineDash([]);
  if (l.fails && l.ys.length > 0) {
    const x = xOf(b, s, l.end);
    const y = yOf(b, s, l.ys[l.ys.length - 1]!);
    c.strokeStyle = l.colour;
    c.lineWidth = 2.5;
    c.beginPath();
    for (const [dx, dy] of [
      [-5, -5],
      [-5, 5],
    ] as const) {
      c.moveTo(x + dx, y + dy);
      c.lineTo(x - dx, y - dy);
    }
    c.stroke();
  }
  c.globalAlpha = 1;
}

function drawRule(c: CanvasRenderingContext2D, b: Box, s: Scale, bytes: number, text: string): void {
  const i = ink.value;
  const y = Math.round(yOf(b, s, bytes)) + 0.5;
  if (y < b.top - 1) return;
  c.strokeStyle = i.limit;
  c.lineWidth = 1.25;
  c.setLineDash([6, 4]);
  c.beginPath();
  c.moveTo(b.left, y);
  c.lineTo(b.left + b.width, y);
  c.stroke();
  c.setLineDash([]);
  label(c, `${text} ${tickSize(bytes)}`, b.left + 6, y - 3, i, i.limit, 'left');
}

// Reading has the heights at the pointer, the highest first.
function Reading({ chart, at, right }: { chart: Chart; at: number; right: boolean }) {
  const rows = chart.lines
    .map((l) => ({ l, y: valueAt(l, at) }))
    .filter((r): r is { l: Line; y: number } => r.y !== null)
    .sort((x, y) => y.y - x.y);
  const ground = chart.ground ? valueAt(chart.ground, at) : null;
  return (
    <div class={'reading ' + (right ? 'at-right' : 'at-left')}>
      <strong>{chart.place(at)}</strong>
      {rows.slice(0, 16).map(({ l, y }) => (
        <span class="reading-row" title={exact(y)}>
          <Swatch colour={l.colour} dash={l.dash} />
          <span class="num">{size(y)}</span> {l.name}
        </span>
      ))}
      {ground !== null && <span>active {size(ground)}</span>}
    </div>
  );
}

// Swatch is a piece of a line, beside its name.
export function Swatch({ colour, dash }: { colour: string; dash: readonly number[] }) {
  return (
    <svg class="line-swatch" width="24" height="8" viewBox="0 0 24 8" aria-hidden="true">
      <line x1="0" y1="4" x2="24" y2="4" stroke={colour} stroke-width="2.5" stroke-dasharray={dash.join(' ') || undefined} />
    </svg>
  );
}
