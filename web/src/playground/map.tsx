// The segments after a step, drawn as on the screen of that name, with the names
// of the blocks in them.

import { effect, signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { areaOf, Frames, pen, short } from '../draw/canvas';
import { plural, size } from '../format';
import { barScale, drawRow, lookOf, rowHeight, type Look } from '../segments/map';
import { blockAt, extent, sum, type Row } from '../segments/layout';
import { ink, type Ink } from '../theme';
import { allocated, free, pending } from '../segments/layout';
import type { Moment } from '../types/playground.gen';
import { placeTip } from '../parts/tip';

// The block that is chosen, by its name: the same through all steps.
export const chosen = signal<string | null>(null);

export function SegmentMap({ m }: { m: Moment }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hover = useSignal<{ segment: number; offset: number; x: number; y: number } | null>(null);
  // In the order in which they came, as the letters have it.
  const rows = useMemo<Row[]>(
    () => m.segments.map((s) => ({ ...sum(s), name: s.name })).sort((a, b) => a.name.length - b.name.length || (a.name < b.name ? -1 : 1)),
    [m],
  );
  const longest = rows.reduce((n, r) => Math.max(n, extent(r.segment)), 1);
  const look = () => lookOf(box.current, (width) => width / longest);
  useEffect(() => {
    const frames = new Frames(() => {
      const target = canvas.current;
      if (!target || !box.current) return;
      const area = areaOf(box.current);
      const c = pen(target, area);
      target.style.width = `${area.width}px`;
      target.style.height = `${area.height}px`;
      const first = Math.floor(box.current.scrollTop / rowHeight);
      const index = m.blocks.findIndex((b) => b.name === chosen.value);
      const marks = {
        block: index < 0 ? null : index,
        segment: null,
        hover: hover.value,
        pinned: new Set<number>(),
        hole: null,
        beside: new Set<number>(),
        request: 0,
        tints: null,
      };
      const l = look();
      for (let i = first; i < rows.length && (i - first) * rowHeight <= area.height; i++) {
        const y = i * rowHeight - box.current.scrollTop;
        drawRow(c, rows[i]!, extent(rows[i]!.segment), y, l, marks, ink.value);
        drawNames(c, rows[i]!, y, l, m, ink.value);
      }
    });
    const stop = effect(() => {
      void [ink.value, chosen.value, hover.value];
      frames.ask();
    });
    const watch = new ResizeObserver(frames.ask);
    const at = box.current!;
    watch.observe(at);
    at.addEventListener('scroll', frames.ask);
    return () => {
      stop();
      watch.disconnect();
      frames.stop();
      at.removeEventListener('scroll', frames.ask);
    };
  }, [m]);
  const find = (e: MouseEvent) => {
    const r = box.current!.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const row = rows[Math.floor((y + box.current!.scrollTop) / rowHeight)];
    const l = look();
    if (!row || x < l.left) return null;
    const { k, x0 } = barScale(l, extent(row.segment));
    const b = blockAt(row.segment, (x - l.left - x0) / k);
    return b && { row, block: b, x, y };
  };
  const h = hover.value;
  const row = h && rows.find((r) => r.segment.address === h.segment);
  const block = row?.segment.blocks.find((b) => b[0] === h?.offset);
  return (
    <div class="map-box">
      <div class="map-head" aria-hidden="true">
        <span class="h-address">segment</span>
        <span class="h-size">size</span>
        <span class="h-free">free</span>
        <span class="h-stream">stream</span>
        <span class="h-pool">pool</span>
        <span class="h-hint legend">
          <span class="key allocated">allocated</span>
          <span class="key wasted">rounding</span>
          <span class="key free">free</span>
          <span class="key pending">pending</span>
          <span class="key unmapped">unmapped</span>
          <span class="key touched">this step</span>
        </span>
      </div>
      <div
        class="map"
        ref={box}
        tabIndex={0}
        role="img"
        aria-label={describe(m)}
        data-rows={rows.length}
        onMouseMove={(e) => {
          const f = find(e);
          hover.value = f && { segment: f.row.segment.address, offset: f.block[0], x: f.x, y: f.y };
        }}
        onMouseLeave={() => (hover.value = null)}
        onClick={(e) => {
          const f = find(e);
          const held = f && f.block[3] >= 0 ? m.blocks[f.block[3]] : undefined;
          chosen.value = held && !held.pending && held.name !== chosen.value ? held.name : null;
        }}
      >
        <div
          ref={(el) => {
            if (el) el.style.height = `${rows.length * rowHeight}px`;
          }}
        >
          <canvas ref={canvas} class="map-canvas" />
        </div>
      </div>
      {h && row && block && (
        <div
          class="tip"
          ref={(el) => placeTip(el, h)}
        >
          <strong>{block[3] >= 0 ? m.blocks[block[3]]!.name : states[block[2]]}</strong> {size(block[1])}
          {block[3] >= 0 && `, ${states[block[2]]}`} at {row.name}+{size(block[0])}
          {block[4] > 0 && block[4] < block[1] && <span class="waste-text">, {size(block[1] - block[4])} lost to rounding</span>}
        </div>
      )}
    </div>
  );
}

const states = ['free', 'allocated', 'pending: freed, but in use on another stream', 'unmapped'];

// drawNames writes the names where there is room, and frames what the step
// touched.
function drawNames(c: CanvasRenderingContext2D, row: Row, y: number, look: Look, m: Moment, i: Ink): void {
  const s = row.segment;
  const { k, x0 } = barScale(look, extent(s));
  const left = look.left + x0;
  c.font = `10.5px ${i.sans}`;
  c.textBaseline = 'middle';
  c.textAlign = 'center';
  for (const [offset, bytes, state, held] of s.blocks) {
    const w = bytes * k - 4;
    if (w < 12) continue;
    const name = held >= 0 ? m.blocks[held]!.name : state === free ? size(bytes) : '';
    const text = held >= 0 ? short(c, name, w) : c.measureText(name).width <= w ? name : '';
    if (!text) continue;
    const x = left + (offset + bytes / 2) * k;
    c.fillStyle = state === allocated ? i.back : state === free ? i.muted : i.text;
    if (state === pending) {
      c.lineWidth = 6; // legible on the hatching
      c.lineJoin = 'round';
      c.strokeStyle = i.back;
      c.strokeText(text, x, y + rowHeight / 2);
    }
    c.fillText(text, x, y + rowHeight / 2);
  }
  const t = m.touched;
  if (t && t.address >= s.address && t.address < s.address + extent(s)) {
    c.strokeStyle = i.pinned;
    c.lineWidth = 2.5;
    c.strokeRect(left + (t.address - s.address) * k, y + 3, Math.max(2, t.size_bytes * k), rowHeight - 6);
  }
}

function describe(m: Moment): string {
  const most = 4;
  const parts = m.segments.slice(0, most).map((s) => {
    const r = sum(s);
    return `${s.name} ${size(s.size_bytes)}, ${plural(r.live, 'block')} in use, ${size(r.free)} free`;
  });
  if (m.segments.length > most) parts.push(`and ${m.segments.length - most} more`);
  return `Map of ${plural(m.segments.length, 'segment')}: ${parts.join('; ')}`;
}
