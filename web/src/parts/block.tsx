// The selected block: what is known of one allocation.

import { count, percent, plural, pool, span, stream, address } from '../format';
import { block, put } from '../route';
import { allocation, meta, moment, pin } from '../state';
import type { Alloc } from '../types/view.gen';
import { At, Bytes, Go, since, Stack, Trouble, Wait } from './basic';

export function BlockPanel({ hint }: { hint: string }) {
  const id = block.value;
  if (id === null) {
    return (
      <div class="side-empty muted">
        <h2>No block selected</h2>
        <p>{hint}</p>
      </div>
    );
  }
  const got = allocation(id).value;
  return (
    <section class="block" aria-label="Selected block" data-panel="block" data-alloc={id}>
      <h2>
        Block {count(id)}
        <button class="plain aside" onClick={() => pin(null)} aria-label="Deselect the block" title="Deselect (Esc)">
          ✕
        </button>
      </h2>
      {got.error && <Trouble>{got.error}</Trouble>}
      {!got.data && !got.error && <Wait>Asking for the block</Wait>}
      {got.data && <Details a={got.data} />}
    </section>
  );
}

function Details({ a }: { a: Alloc }) {
  const waste = a.size_bytes - a.requested_bytes;
  return (
    <>
      <dl class="facts">
        <dt>Size</dt>
        <dd>
          <Bytes n={a.size_bytes} field="size_bytes" />
        </dd>
        <dt>Requested</dt>
        <dd>
          <Bytes n={a.requested_bytes} field="requested_bytes" />
          {waste > 0 && <span class="waste-text"> {percent(waste / a.size_bytes)} lost to rounding</span>}
        </dd>
        <dt>Lifetime</dt>
        <dd data-field="lifetime">{lifetime(a)}</dd>
        {moment.value !== null && !alive(a, moment.value) && (
          <>
            <dt>Now</dt>
            <dd>not alive at the selected moment</dd>
          </>
        )}
        <dt>Allocated</dt>
        <dd>
          {a.alloc_event === null ? (
            'before the first event'
          ) : (
            <>
              event <At event={a.alloc_event} />
              {when(a.alloc_time)}
            </>
          )}
        </dd>
        <dt>Freed</dt>
        <dd>
          {a.free_event === null ? (
            a.state_at_end === 'pending' ? (
              'pending at the end'
            ) : (
              'not in this file'
            )
          ) : (
            <>
              event <At event={a.free_event} />
              {when(a.free_time)}
            </>
          )}
        </dd>
        {a.completed_event !== null && a.free_event !== null && a.completed_event > a.free_event + 1 && (
          <>
            <dt>Pending</dt>
            <dd>
              <span class="pending-text">
                freed but in use on another stream until event <At event={a.completed_event} />
              </span>
            </dd>
          </>
        )}
        <dt>Stream</dt>
        <dd>{stream(a.stream)}</dd>
        <dt>Pool</dt>
        <dd>{pool(a.pool)}</dd>
        <dt>Category</dt>
        <dd>
          {a.category ? `${a.category.replaceAll('_', ' ')}${a.category_confidence ? ` (${a.category_confidence})` : ''}` : 'not known'}
        </dd>
        <dt>Address</dt>
        <dd class="mono" title={`Allocation ${a.address_use} at this address, from 0`}>
          {address(a.address)}_{a.address_use}
        </dd>
        {a.segment && (
          <>
            <dt>Segment</dt>
            <dd>
              <span class="mono">{address(a.segment.address)}</span>, <Bytes n={a.segment.size_bytes} />
            </dd>
          </>
        )}
        {a.total_bytes !== null && (
          <>
            <dt>Active after it</dt>
            <dd>
              <Bytes n={a.total_bytes} />
            </dd>
          </>
        )}
        {a.compile_context && a.compile_context !== 'N/A' && (
          <>
            <dt>Compiled</dt>
            <dd>{a.compile_context}</dd>
          </>
        )}
        {a.extra && (
          <>
            <dt>Also</dt>
            <dd>{JSON.stringify(a.extra)}</dd>
          </>
        )}
        {a.user_metadata && (
          <>
            <dt>Metadata</dt>
            <dd>{a.user_metadata}</dd>
          </>
        )}
      </dl>
      <p class="links">
        <Go screen="timeline" change={around(a)}>
          Timeline
        </Go>
        <Go screen="segments" change={a.alloc_event === null ? { event: -1 } : { event: a.alloc_event }}>
          Segments
        </Go>
        {a.alloc_event !== null && (
          <Go screen="events" change={{ event: a.alloc_event }}>
            Events
          </Go>
        )}
        <button class="link" onClick={() => put({ alloc: null }, 'push')}>
          Deselect
        </button>
      </p>
      <h3>Call stack</h3>
      <Stack frames={a.frames} {...(a.frames_missing ? { why: `No call stack: ${a.frames_missing}.` } : {})} />
      {a.free_frames && (
        <>
          <h3>Freed at</h3>
          <Stack frames={a.free_frames} />
        </>
      )}
    </>
  );
}

// alive reports whether a block is in use after an event, pending included.
function alive(a: Alloc, event: number): boolean {
  const end = a.completed_event ?? (a.state_at_end === 'freed' ? a.free_event : null);
  return (a.alloc_event ?? -1) <= event && (end === null || event < end);
}

function when(time: number | null): string {
  const text = since(time);
  return text ? `, ${text}` : '';
}

export function lifetime(a: Alloc): string {
  if (a.alloc_event === null && a.free_event === null) return 'allocated before the first event, never freed in this file';
  if (a.alloc_event === null) return 'allocated before the first event';
  if (a.free_event === null) return 'never freed in this file';
  const events = plural(a.free_event - a.alloc_event, 'event');
  if (a.alloc_time === null || a.free_time === null) return events;
  return `${span(a.free_time - a.alloc_time)}, ${events}`;
}

// around is a stretch of the timeline with the life of an allocation in its middle.
function around(a: Alloc): Record<string, number | string | null> {
  const last = meta.value.data?.events ?? 0;
  const from = a.alloc_event ?? 0;
  const to = a.free_event ?? last;
  const margin = Math.max(50, (to - from) * 0.5);
  return { x: null, event: a.alloc_event ?? -1, from: Math.max(0, Math.floor(from - margin)), to: Math.min(last, Math.ceil(to + margin)), low: null, high: null };
}
