// The bar at the foot of every screen: the selected moment and block, and the
// ways from one event to the next.

import { count, size } from '../format';
import { block, event, ofNoRun, place, screen } from '../route';
import { allocation, jump, meta, moment, pin, ready, select, step, toPeak, type Target } from '../state';
import { signal } from '@preact/signals';
import { get } from '../api';
import { run } from '../route';
import { since } from './basic';
import type { Events } from '../types/view.gen';
import { useEffect } from 'preact/hooks';

interface Moment {
  event: number;
  time: number | null;
  reserved: number | null;
  allocated: number | null;
  action: string;
}

// The time and totals at the moment, asked for when it rests.
const at = signal<Moment | null>(null);

function useMoment(): void {
  const e = moment.value;
  const id = run.value;
  const ok = ready.value;
  useEffect(() => {
    if (e === null || e < 0 || !ok) {
      at.value = null;
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const got = await get<Events>('events', { run: id, from: e, count: 1 }, stop.signal);
        const row = got.rows[0];
        at.value = row ? { event: e, time: row.time, reserved: row.reserved_bytes, allocated: row.allocated_bytes, action: row.action } : null;
      } catch {
        at.value = null;
      }
    }, 40);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [e, id, ok]);
}

export function MomentBar() {
  useMoment();
  const m = meta.value.data;
  const e = moment.value;
  if (ofNoRun(screen.value)) return null; // there is no moment of a run to move
  if (!m || e === null) return <footer class="moment" />;
  const now = at.value?.event === e ? at.value : null;
  const inStep = m.steps.find((s) => s.begin <= e && e < s.end);
  const told = now && tell(now, inStep?.number);
  const b = block.value;
  const a = b === null ? null : allocation(b).value.data;
  return (
    <footer class="moment" aria-label="Selected moment and block">
      <div class="steps" role="group" aria-label="Move the moment">
        <Jump what="oom" dir={-1} label="‹ OOM" title="Previous out-of-memory event (O)" off={m.ooms.length === 0} />
        <Jump what="segment" dir={-1} label="‹ segment" title="Previous segment event (N)" />
        <button onClick={() => step(-1)} title="Previous event (,)" disabled={e <= -1}>
          ‹ event
        </button>
        <span class="where" data-field="moment" data-event={e}>
          {e < 0 ? 'before the first event' : `event ${count(e)}`}
          <span class="muted"> of {count(m.events)}</span>
        </span>
        <button onClick={() => step(1)} title="Next event (.)" disabled={e >= m.events - 1}>
          event ›
        </button>
        <Jump what="segment" dir={1} label="segment ›" title="Next segment event (n)" />
        <Jump what="oom" dir={1} label="OOM ›" title="Next out-of-memory event (o)" off={m.ooms.length === 0} />
        <button onClick={() => toPeak('allocated')} title="Peak of allocated memory (p)" data-jump="peak-allocated">
          peak allocated
        </button>
        <button onClick={() => toPeak('reserved')} title="Peak of reserved memory (P)" data-jump="peak-reserved">
          peak reserved
        </button>
      </div>
      <div class="what">
        {now && (
          <span class="muted" title={told ?? undefined}>
            {told}
          </span>
        )}
        {event.value !== null && (
          <button class="plain" onClick={() => select(null)} title="Back to the default moment" aria-label="Deselect the moment">
            ✕
          </button>
        )}
      </div>
      {b !== null && (
        <div class="held" title={a ? [size(a.size_bytes), a.site].filter(Boolean).join(', ') : undefined}>
          <span>
            block {count(b)}
            {a && <span class="size">, {size(a.size_bytes)}</span>}
          </span>
          {a?.site && screen.value !== 'timeline' && <span class="muted site">{a.site}</span>}
          <button class="plain" onClick={() => pin(null)} aria-label="Deselect the block" title="Deselect (Esc)">
            ✕
          </button>
        </div>
      )}
    </footer>
  );
}

function tell(m: Moment, inStep: number | undefined): string {
  const parts = [
    m.allocated !== null && `allocated ${size(m.allocated)}`,
    m.reserved !== null && `reserved ${size(m.reserved)}`,
    since(m.time) ? `${m.action} at ${since(m.time)}` : m.action,
    inStep !== undefined && `step ${inStep}`,
  ];
  return (place.value.params['variant'] !== undefined ? 'in the recording: ' : '') + parts.filter(Boolean).join(', ');
}

function Jump({ what, dir, label, title, off }: { what: Target; dir: 1 | -1; label: string; title: string; off?: boolean }) {
  return (
    <button onClick={() => jump(what, dir)} title={title} disabled={off} data-jump={`${what}${dir > 0 ? '+' : '-'}`}>
      {label}
    </button>
  );
}
