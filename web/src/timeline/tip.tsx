// The notes beside the pointer.

import { useEffect, useState } from 'preact/hooks';
import { count, percent, pool, size, span, stream } from '../format';
import { plainName } from '../palette';
import { lifetime } from '../parts/block';
import { run } from '../route';
import { allocation, load } from '../state';
import type { Events } from '../types/view.gen';
import type { Plot } from './plot';
import type { Hover } from './pointer';
import { moving, only, what } from './view';

// Tip is the note beside the pointer.
export function Tip({ plot }: { plot: Plot }) {
  const h = plot.pointer.hover.value;
  const [asked, setAsked] = useState<number | null>(null);
  const id = h?.alloc ?? null;
  useEffect(() => {
    // A pointer on its way asks for nothing.
    const timer = setTimeout(() => setAsked(id), 60);
    return () => clearTimeout(timer);
  }, [id]);
  if (!h) return null;
  const width = plot.sight()?.box.width ?? 0;
  const place = (el: HTMLElement | null) => {
    if (!el) return;
    const left = h.x > width * 0.6;
    el.style.left = left ? '' : `${h.x + 14}px`;
    el.style.right = left ? `${el.parentElement!.clientWidth - h.x + 14}px` : '';
    el.style.top = `${Math.max(4, Math.min(h.y - 20, el.parentElement!.clientHeight - el.offsetHeight - 4))}px`;
  };
  return (
    <div class="tip" ref={place} data-tip data-event={h.event}>
      <div class="muted">
        {h.event < 0 ? 'before the first event' : `event ${count(h.event)}`}:{' '}
        {what.value === 'blocks' && `${only.value || moving.value ? 'shown' : 'active'} ${size(Math.round(h.live))}, `}reserved{' '}
        {size(Math.round(h.reserved))}
        {h.waiting > 0 && `, pending ${size(Math.round(h.waiting))}`}
        {h.events > 1 && h.highest > h.live + 1 && what.value === 'blocks' && (
          <div>
            highest of the {count(h.events)} events here {size(Math.round(h.highest))}
          </div>
        )}
      </div>
      {h.band !== null && (
        <div>
          {size(Math.round(h.band))} in {what.value === 'blocks' ? 'allocations' : 'segments'} too small to draw. Zoom in on them with Alt
          and the wheel.
        </div>
      )}
      {id !== null && asked === id && (what.value === 'blocks' ? <TipBlock id={id} h={h} /> : <TipSegment event={id} />)}
      {id !== null && asked !== id && <div>…</div>}
    </div>
  );
}

// BarTip is the note on a step or an annotation.
export function BarTip({ plot }: { plot: Plot }) {
  const over = plot.pointer.bar.value;
  if (!over) return null;
  const { bar, x, y } = over;
  const place = (el: HTMLElement | null) => {
    if (!el) return;
    el.style.left = `${Math.max(4, Math.min(x + 12, el.parentElement!.clientWidth - el.offsetWidth - 4))}px`;
    el.style.top = `${y - el.offsetHeight - 10}px`;
  };
  return (
    <div class="tip" ref={place} data-bar={bar.name}>
      <div>
        <strong>{bar.name}</strong>
      </div>
      <div class="muted">
        events {count(bar.range.after + 1)} to {count(bar.range.until)}
        {bar.duration !== null && `, ${span(bar.duration)}`}
      </div>
      <div class="muted">Click selects it, double click zooms to it.</div>
    </div>
  );
}

function TipBlock({ id, h }: { id: number; h: Hover }) {
  const got = allocation(id).value;
  if (got.error) return <div>{got.error}</div>;
  const a = got.data;
  if (!a) return <div>…</div>;
  const waste = a.size_bytes - a.requested_bytes;
  return (
    <>
      <div>
        <strong>{size(a.size_bytes)}</strong>
        {waste > 0 && <span class="waste-text"> ({percent(waste / a.size_bytes)} rounding)</span>}, {lifetime(a)}
      </div>
      <div>
        stream {stream(a.stream)}, pool {pool(a.pool)}
        {a.category && `, ${plainName(a.category)}`}
      </div>
      {h.pending && <div class="pending-text">freed, but waiting for another stream (record_stream)</div>}
      <div class="site">{a.site || '(no call stack)'}</div>
    </>
  );
}

const older = 0xffffffff; // of a segment that is older than the trace

function TipSegment({ event }: { event: number }) {
  if (event === older) return <div>segment older than the first event</div>;
  const got = load<Events>('events', { run: run.value, from: event, count: 1 }).value;
  const e = got.data?.rows[0];
  if (!e) return <div>{got.error ?? '…'}</div>;
  return (
    <>
      <div>
        <strong>{size(e.size_bytes ?? 0)}</strong> by {e.action} at event {count(e.event)}
      </div>
      <div>stream {stream(e.stream ?? 0)}</div>
      <div class="site">{e.site ?? '(no call stack)'}</div>
    </>
  );
}
