// Segments: the allocator's map at any moment.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { Follower, get, type Query } from '../api';
import { areaOf, pen, Frames } from '../draw/canvas';
import { address, count, plural, size } from '../format';
import { useKeys } from '../keys';
import { Bytes, Choice, Empty, Select, Trouble, Wait } from '../parts/basic';
import { BlockPanel } from '../parts/block';
import { block, number, place, put, run } from '../route';
import { explain, meta, moment } from '../state';
import { SegmentPanel } from '../segments/details';
import { blockAt, extent, rowOf, sorted, sorts, sum, type Row, type Sort } from '../segments/layout';
import { barScale, drawRow, labelWidth, rowHeight, type Look } from '../segments/map';
import { RequestStrip } from '../segments/request';
import { Scrub } from '../segments/scrub';
import { variantQuery, VariantLine } from '../segments/variant';
import { ink } from '../theme';
import { free } from '../segments/layout';
import type { Segments as State } from '../types/view.gen';
import { effect } from '@preact/signals';

export function Segments() {
  const m = meta.value.data;
  const state = useSignal<State | null>(null);
  const error = useSignal<string | null>(null);
  const at = moment.value;
  const id = run.value;
  const follow = useMemo(
    () =>
      new Follower<Query, State>(
        (q, signal) => get<State>('segments', q, signal),
        (s) => {
          state.value = s;
          error.value = null;
        },
        (text) => (error.value = text),
      ),
    [],
  );
  useEffect(() => () => follow.cancel(), []);
  const event = m && m.events === 0 ? -1 : at;
  const variant = variantQuery(place.value.params);
  useEffect(() => {
    if (event !== null && id !== null && m) follow.want({ run: id, event, ...variant });
  }, [event, id, m, JSON.stringify(variant)]);
  if (!m) return <Wait>Asking what there is</Wait>;
  const s = state.value;
  return (
    <div class="segments">
      {m.events > 0 && <Scrub />}
      {variant && <VariantLine failed={s?.first_failure ?? null} />}
      {error.value && <Trouble>{error.value}</Trouble>}
      {!s && !error.value && <Wait>Laying out the segments</Wait>}
      {s && <Layout s={s} late={s.event !== event} />}
    </div>
  );
}

// pinnersAt tells whether the pinners of explain are those of a moment. They are
// of the recording, and have its addresses.
function pinnersAt(event: number): boolean {
  return explain.value.data?.failure?.event === event && !variantQuery(place.value.params);
}

const zoomStep = 1.6;

function Layout({ s, late }: { s: State; late: boolean }) {
  const params = place.value.params;
  const sort = (sorts.find(([k]) => k === params['sort'])?.[0] ?? 'size') as Sort;
  const stretched = params['bars'] === 'stretched';
  const rows = useMemo(() => sorted(s.segments.map(sum), sort), [s, sort]);
  const chosen = number(params['segment']);
  const row = rows.find((r) => r.segment.address === chosen) ?? null;
  const failing = pinnersAt(s.event);
  const pinned = failing ? explain.value.data!.pinners.length : 0;
  return (
    <>
      <div class="tools" role="toolbar" aria-label="Segments">
        <Select
          label="sort by"
          name="sort"
          value={sort}
          options={sorts.map(([value, text]) => ({ value, text }))}
          onPick={(v) => put({ sort: v === 'size' ? null : v }, 'push')}
        />
        <Choice
          label="Width of the bars"
          value={stretched ? 'stretched' : 'scale'}
          options={[
            { value: 'scale', text: 'to scale' },
            { value: 'stretched', text: 'stretched' },
          ]}
          onPick={(v) => put({ bars: v === 'stretched' ? v : null })}
        />
        <span class="legend">
          <span class="key allocated">allocated</span>
          <span class="key wasted">rounding</span>
          <span class="key free">free</span>
          <span class="key pending">pending</span>
          <span class="key unmapped">unmapped</span>
          {pinned > 0 && (
            <span
              class="key pinned"
              title="Live blocks of a segment in which more is free than live: they keep it from release. A mark at the left tells all segments that pin free memory."
            >
              pins more than it holds
            </span>
          )}
        </span>
        <span class="grow" />
        <span data-field="segments-event" data-event={s.event} aria-busy={late}>
          {plural(s.segments.length, 'segment')}, <Bytes n={s.reserved_bytes} field="reserved_bytes" /> reserved,{' '}
          <Bytes n={s.allocated_bytes} field="allocated_bytes" /> allocated, <Bytes n={s.free_bytes} field="free_bytes" /> free
        </span>
      </div>
      <RequestStrip s={s} />
      <div class="with-side">
        {rows.length === 0 ? (
          <Empty>No memory is reserved at this moment.</Empty>
        ) : (
          <MapArea s={s} rows={rows} stretched={stretched} chosen={chosen} />
        )}
        <aside class="side" aria-label="Details">
          <SegmentPanel row={row} failing={failing} />
          <BlockPanel hint="Click a block in the map to see its size, its life and its call stack." />
        </aside>
      </div>
    </>
  );
}

function MapArea({ s, rows, stretched, chosen }: { s: State; rows: Row[]; stretched: boolean; chosen: number | null }) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const hover = useSignal<{ segment: number; offset: number; x: number; y: number } | null>(null);
  const zoom = useSignal({ factor: 1, offset: 0 });
  const longest = useMemo(
    () => rows.reduce((n, r) => Math.max(n, extent(r.segment)), s.request?.segment_bytes ?? s.request?.size_bytes ?? 1),
    [rows],
  );
  const largest = useMemo(() => findLargest(rows), [rows]);

  const look = (): Look => {
    const width = Math.max(1, (scroller.current?.clientWidth ?? 800) - labelWidth - 12);
    return { width, perByte: stretched ? 0 : (width / longest) * zoom.value.factor, offset: zoom.value.offset };
  };
  const draw = () => {
    const box = scroller.current;
    const target = canvas.current;
    if (!box || !target) return;
    const area = areaOf(box);
    const c = pen(target, area);
    target.style.height = `${area.height}px`;
    target.style.width = `${area.width}px`;
    const failing = pinnersAt(s.event);
    const pinned = new Set(failing ? explain.value.data!.pinners.map((p) => p.segment) : []);
    const l = look();
    const marks = {
      block: block.value,
      segment: chosen,
      hover: hover.value?.offset ?? null,
      hoverSegment: hover.value?.segment ?? null,
      pinned,
      largest,
    };
    const first = Math.floor(box.scrollTop / rowHeight);
    for (let i = first; i < rows.length && (i - first) * rowHeight <= area.height; i++) {
      drawRow(c, rows[i]!, extent(rows[i]!.segment), i * rowHeight - box.scrollTop, l, marks, ink.value);
    }
  };
  useEffect(() => {
    const frames = new Frames(draw);
    const stop = effect(() => {
      void [ink.value, block.value, hover.value, zoom.value, explain.value];
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
  }, [rows, stretched, chosen, longest]);

  const show = (i: number) => {
    const box = scroller.current;
    if (!box || i < 0) return;
    if (i * rowHeight < box.scrollTop) box.scrollTop = i * rowHeight;
    else if ((i + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (i + 1) * rowHeight - box.clientHeight;
  };
  // A block that was chosen elsewhere is brought into view.
  useEffect(() => {
    if (block.value !== null) show(rowOf(rows, block.value));
  }, [block.value, s.event]);

  const find = (e: MouseEvent) => {
    const box = scroller.current!;
    const r = box.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const row = rows[Math.floor((y + box.scrollTop) / rowHeight)];
    if (!row) return null;
    const l = look();
    const { k, x0 } = barScale(l, extent(row.segment));
    const found = x < labelWidth ? null : blockAt(row.segment, (x - labelWidth - x0) / k);
    return { row, block: found, x, y };
  };
  const zoomBy = (factor: number, x: number) => {
    const now = zoom.value;
    const next = Math.max(1, Math.min(4000, now.factor * factor));
    const at = x - labelWidth;
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
  const moveBlock = (by: number) => {
    const row = rows.find((r) => r.segment.address === chosen);
    if (!row) return move(0);
    const held = row.segment.blocks.filter((b) => b[3] >= 0);
    const i = held.findIndex((b) => b[3] === block.value);
    const next = held[i < 0 ? (by > 0 ? 0 : held.length - 1) : i + by];
    if (next) put({ alloc: next[3] });
  };
  useKeys(
    'Segments',
    () => [
      { keys: ['ArrowUp', 'ArrowDown'], text: 'Previous, next segment', run: (e) => move(e.key === 'ArrowDown' ? 1 : -1) },
      {
        keys: ['ArrowLeft', 'ArrowRight'],
        text: 'Previous, next block of the segment',
        run: (e) => moveBlock(e.key === 'ArrowRight' ? 1 : -1),
      },
      { keys: ['PageUp', 'PageDown'], text: '20 segments up, down', run: (e) => move(e.key === 'PageDown' ? 20 : -20) },
      {
        keys: ['+', '=', '-'],
        shown: '+ -',
        text: 'Wider, narrower bars',
        run: (e) => zoomBy(e.key === '-' ? 1 / zoomStep : zoomStep, labelWidth + look().width / 2),
      },
      { keys: ['0'], text: 'Bars to their first width', run: () => (zoom.value = { factor: 1, offset: 0 }) },
      { keys: ['b'], text: 'Bars to scale or stretched', run: () => put({ bars: stretched ? null : 'stretched' }) },
    ],
    [rows, chosen, stretched],
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
          put({ segment: f.row.segment.address, ...(f.block && f.block[3] >= 0 ? { alloc: f.block[3] } : {}) }, 'push');
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
          ref={(el) => {
            if (!el) return;
            const box = el.parentElement!;
            const right = h.x > box.clientWidth * 0.6;
            el.style.left = right ? '' : `${h.x + 14}px`;
            el.style.right = right ? `${box.clientWidth - h.x + 14}px` : '';
            el.style.top = `${Math.min(h.y + 34, box.clientHeight - el.offsetHeight - 4)}px`;
          }}
        >
          <strong>{size(hoveredBlock[1])}</strong> {states[hoveredBlock[2]]} at{' '}
          <span class="mono">{address(hovered.segment.address + hoveredBlock[0])}</span>
          {hoveredBlock[4] > 0 && hoveredBlock[4] < hoveredBlock[1] && (
            <span class="waste-text">, {size(hoveredBlock[1] - hoveredBlock[4])} lost to rounding</span>
          )}
        </div>
      )}
    </div>
  );
}

const states = ['free', 'allocated', 'pending: freed, but in use on another stream', 'unmapped'];

function clampOffset(offset: number, factor: number, width: number): number {
  return Math.max(0, Math.min(offset, width * factor - width));
}

function findLargest(rows: readonly Row[]): { segment: number; offset: number } | null {
  let best: { segment: number; offset: number } | null = null;
  let most = 0;
  for (const r of rows) {
    if (r.largestFree <= most) continue;
    const b = r.segment.blocks.find((b) => b[2] === free && b[1] === r.largestFree)!;
    most = b[1];
    best = { segment: r.segment.address, offset: b[0] };
  }
  return best;
}
