// The map itself: rows of blocks, the pointer and the keys.

import { effect, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { areaOf, Frames, pen } from '../draw/canvas';
import { count } from '../format';
import { useKeys, useMouse } from '../keys';
import { css, indexed, momentColourings, tableSize, type Colouring } from '../palette';
import { block, place, put, type Change } from '../route';
import { explain } from '../explained';
import { meta } from '../state';
import { ink, theme } from '../theme';
import type { Block, Segments as State } from '../types/view.gen';
import { beside, blockAt, extent, free, holeAt, rowOf, unmapped, type Hole, type Row } from './layout';
import { barScale, drawRow, lookOf, rowHeight } from './map';
import { togglePlay } from './play';
import { TipText } from './tip';
import { variantQuery } from './variant';
import { placeTip } from '../parts/tip';

const zoomStep = 1.6;

export function MapArea({
  s,
  rows,
  stretched,
  chosen,
  hole,
  by,
}: {
  s: State;
  rows: Row[];
  stretched: boolean;
  chosen: number | null;
  hole: Hole | null;
  by: Colouring;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hover = useSignal<{ segment: number; offset: number; x: number; y: number } | null>(null);
  const zoom = useSignal({ factor: 1, offset: 0 });
  const longest = useMemo(
    () => rows.reduce((n, r) => Math.max(n, extent(r.segment)), s.request?.segment_bytes ?? s.request?.size_bytes ?? 1),
    [rows],
  );
  const look = () => lookOf(scroller.current, (width) => (stretched ? 0 : (width / longest) * zoom.value.factor), zoom.value.offset);
  const draw = () => {
    const box = scroller.current;
    const target = canvas.current;
    if (!box || !target) return;
    const area = areaOf(box);
    const c = pen(target, area);
    target.style.height = `${area.height}px`;
    target.style.width = `${area.width}px`;
    const pinned = new Set(pinnersAt(s.event) ? explain.value.data!.pinners.map((p) => p.segment) : []);
    const l = look();
    const of = indexed(by, theme.value, meta.value.data!);
    const marks = {
      block: block.value,
      segment: chosen,
      hover: hover.value,
      pinned,
      hole: hole && { segment: hole.row.segment.address, offset: hole.row.segment.blocks[hole.index]![0] },
      beside: new Set(hole ? beside(hole).map((b) => b[3]) : []),
      request: s.request?.size_bytes ?? 0,
      tints: Array.from({ length: tableSize }, (_, i) => css(of(i))),
    };
    // For tests: what is drawn, and how.
    (box as unknown as { marks: typeof marks; rows: Row[] }).marks = marks;
    (box as unknown as { rows: Row[] }).rows = rows;
    const first = Math.floor(box.scrollTop / rowHeight);
    for (let i = first; i < rows.length && (i - first) * rowHeight <= area.height; i++) {
      drawRow(c, rows[i]!, extent(rows[i]!.segment), i * rowHeight - box.scrollTop, l, marks, ink.value);
    }
  };
  useEffect(() => {
    const frames = new Frames(draw);
    const stop = effect(() => {
      void [ink.value, theme.value, block.value, hover.value, zoom.value, explain.value];
      frames.ask();
    });
    const watch = new ResizeObserver(frames.ask);
    watch.observe(scroller.current!);
    const box = scroller.current!;
    box.addEventListener('scroll', frames.ask);
    return () => {
      stop();
      watch.disconnect();
      frames.stop();
      box.removeEventListener('scroll', frames.ask);
    };
  }, [rows, stretched, chosen, longest, hole, by]);

  const show = (i: number) => {
    const box = scroller.current;
    if (!box || i < 0) return;
    if (i * rowHeight < box.scrollTop) box.scrollTop = i * rowHeight;
    else if ((i + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (i + 1) * rowHeight - box.clientHeight;
  };
  // What was chosen elsewhere is brought into view.
  useEffect(() => {
    if (block.value !== null) show(rowOf(rows, block.value));
    else if (hole?.chosen) show(rows.indexOf(hole.row));
    else if (chosen !== null) show(rows.findIndex((r) => r.segment.address === chosen));
  }, [block.value, s.event, chosen, hole?.chosen && hole.row]);

  const find = (e: MouseEvent) => {
    const box = scroller.current!;
    const r = box.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const row = rows[Math.floor((y + box.scrollTop) / rowHeight)];
    if (!row) return null;
    const l = look();
    const { k, x0 } = barScale(l, extent(row.segment));
    const found = x < l.left ? null : blockAt(row.segment, (x - l.left - x0) / k);
    return { row, block: found, x, y };
  };
  const zoomBy = (factor: number, x: number) => {
    const now = zoom.value;
    const next = Math.max(1, Math.min(4000, now.factor * factor));
    const at = x - look().left;
    const offset = (now.offset + at) * (next / now.factor) - at;
    zoom.value = { factor: next, offset: clampOffset(offset, next, look().width) };
  };
  useLayoutEffect(() => {
    const box = scroller.current!;
    const wheel = (e: WheelEvent) => {
      if (!(e.altKey || e.ctrlKey || e.shiftKey) || stretched) return;
      e.preventDefault();
      if (e.shiftKey)
        zoom.value = { ...zoom.value, offset: clampOffset(zoom.value.offset + e.deltaY + e.deltaX, zoom.value.factor, look().width) };
      else zoomBy(Math.exp(-e.deltaY * 0.003), e.clientX - box.getBoundingClientRect().left);
    };
    box.addEventListener('wheel', wheel, { passive: false });
    return () => box.removeEventListener('wheel', wheel);
  }, [stretched, longest]);

  const move = (by: number) => {
    const i = rows.findIndex((r) => r.segment.address === chosen);
    const next = Math.max(0, Math.min(rows.length - 1, i < 0 ? 0 : i + by));
    show(next);
    put({ segment: rows[next]!.segment.address });
  };
  const pick = (row: Row, b: Block, how: 'push' | 'replace') => {
    put({ segment: row.segment.address, ...choice(row, b) }, how);
    if (stretched) return;
    const { k } = barScale(look(), extent(row.segment));
    const [x0, x1] = [b[0] * k, (b[0] + b[1]) * k];
    const { factor, offset } = zoom.value;
    const width = look().width;
    if (x1 < offset || x0 > offset + width) zoom.value = { factor, offset: clampOffset((x0 + x1 - width) / 2, factor, width) };
  };
  // moveBlock goes along the blocks, holes among them, from one segment to the next.
  const moveBlock = (by: number) => {
    const i = rows.findIndex((r) => r.segment.address === chosen);
    if (i < 0) return move(0);
    const row = rows[i]!;
    const list = mapped(row);
    const at = list.findIndex((b) => (block.value !== null ? b[3] === block.value : hole?.chosen && isHole(hole, row, b)));
    const next = at < 0 ? list[by > 0 ? 0 : list.length - 1] : list[at + by];
    if (next) return pick(row, next, 'replace');
    const other = rows[i + by];
    if (!other) return;
    const there = mapped(other);
    show(i + by);
    pick(other, there[by > 0 ? 0 : there.length - 1]!, 'replace');
  };
  const toLargest = () => {
    const h = holeAt(rows, null);
    if (h) pick(h.row, h.row.segment.blocks[h.index]!, 'push');
  };
  useMouse('Segments', [
    ['Click', 'Select the segment and the block'],
    ['Alt wheel', 'Zoom on bytes around the pointer'],
    ['Shift wheel', 'Move left and right'],
    ['Strip on top', 'Click or drag to move the moment'],
  ]);
  useKeys(
    'Segments',
    () => [
      { keys: ['ArrowUp', 'ArrowDown'], text: 'Previous, next segment', run: (e) => move(e.key === 'ArrowDown' ? 1 : -1) },
      {
        keys: ['ArrowLeft', 'ArrowRight'],
        text: 'Previous, next block, holes among them',
        run: (e) => moveBlock(e.key === 'ArrowRight' ? 1 : -1),
      },
      { keys: ['PageUp', 'PageDown'], text: '20 segments up, down', run: (e) => move(e.key === 'PageDown' ? 20 : -20) },
      {
        keys: ['+', '=', '-'],
        shown: '+ -',
        text: 'Wider, narrower bars',
        run: (e) => zoomBy(e.key === '-' ? 1 / zoomStep : zoomStep, look().left + look().width / 2),
      },
      { keys: ['0'], text: 'Bars to their first width', run: () => (zoom.value = { factor: 1, offset: 0 }) },
      { keys: ['h'], text: 'The largest hole', run: toLargest },
      { keys: ['c'], text: 'Next way of colouring', run: () => nextColouring(by) },
      { keys: ['r', ' '], shown: 'r', text: 'Play or pause', run: togglePlay },
      { keys: ['b'], text: 'Bars to scale or stretched', run: () => put({ bars: stretched ? null : 'stretched' }) },
    ],
    [rows, chosen, stretched, hole, by],
  );

  const h = hover.value;
  const hovered = h ? rows.find((r) => r.segment.address === h.segment) : null;
  const hoveredBlock = hovered && h ? hovered.segment.blocks.find((b) => b[0] === h.offset) : null;
  return (
    <div class="map-box">
      <div class="map-head" aria-hidden="true">
        <span class="h-address">segment</span>
        <span class="h-size">size</span>
        <span class="h-free">free</span>
        <span class="h-stream">stream</span>
        <span class="h-pool">pool</span>
        {!stretched && <span class="h-hint">Alt and the wheel zoom</span>}
      </div>
      <div
        class="map"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${count(rows.length)} segments at event ${count(s.event)}. Arrow keys move between segments and blocks.`}
        data-keys="screen"
        data-rows={rows.length}
        onMouseMove={(e) => {
          const f = find(e);
          hover.value = f && f.block ? { segment: f.row.segment.address, offset: f.block[0], x: f.x, y: f.y } : null;
        }}
        onMouseLeave={() => (hover.value = null)}
        onClick={(e) => {
          const f = find(e);
          if (!f) return;
          put({ segment: f.row.segment.address, ...(f.block ? choice(f.row, f.block) : {}) }, 'push');
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
      {h && hovered && hoveredBlock && (
        <div
          class="tip"
          ref={(el) => placeTip(el, h)}
        >
          <TipText row={hovered} b={hoveredBlock} />
        </div>
      )}
    </div>
  );
}

function clampOffset(offset: number, factor: number, width: number): number {
  return Math.max(0, Math.min(offset, width * factor - width));
}

// choice is what the address has of a selected block: an allocation, or a hole.
function choice(row: Row, b: Block): Change {
  if (b[3] >= 0) return { alloc: b[3], hole: null };
  return b[2] === free ? { alloc: null, hole: row.segment.address + b[0] } : {};
}

function isHole(hole: Hole, row: Row, b: Block): boolean {
  return hole.row === row && row.segment.blocks[hole.index] === b;
}

// mapped are the blocks that can be selected.
function mapped(row: Row): Block[] {
  return row.segment.blocks.filter((b) => b[2] !== unmapped);
}

export function colourBy(c: string): void {
  put({ color: c === meta.value.data?.default_color ? null : c }, 'push');
}

function nextColouring(by: Colouring): void {
  const i = momentColourings.findIndex(([c]) => c === by);
  colourBy(momentColourings[(i + 1) % momentColourings.length]![0]);
}

// pinnersAt tells whether the pinners of explain are those of a moment. They are
// of the recording, and have its addresses.
export function pinnersAt(event: number): boolean {
  return explain.value.data?.failure?.event === event && !variantQuery(place.value.params);
}
