import { count, seconds } from '../format';
import { Bytes, Go, Stack, Trouble, Wait } from '../parts/basic';
import { event, run } from '../route';
import { load, moment } from '../state';
import type { Events } from '../types/view.gen';

// EventPanel is the selected event with its own call stack.
export function EventPanel() {
  const at = moment.value;
  if (at === null || at < 0) return null;
  const got = load<Events>('events', { run: run.value, from: at, count: 1, frames: 1 }).value;
  const row = got.data?.rows[0];
  if (!row) return got.error ? <Trouble>{got.error}</Trouble> : <Wait>Asking for the event</Wait>;
  return (
    <section aria-label="Selected event" data-panel="event" data-event={row.event}>
      <h2>
        Event {count(row.event)}: {row.action}
      </h2>
      <dl class="facts">
        <dt>Size</dt>
        <dd>{row.size_bytes === null ? '-' : <Bytes n={row.size_bytes} field="event.size_bytes" />}</dd>
        {row.since_us !== null && (
          <>
            <dt>Time</dt>
            <dd class="num">{seconds(row.since_us)}</dd>
          </>
        )}
        <dt>Reserved</dt>
        <dd>
          <Bytes n={row.reserved_bytes} field="event.reserved_bytes" />
        </dd>
        <dt>Active</dt>
        <dd>
          <Bytes n={row.active_bytes} field="event.active_bytes" />
        </dd>
        {row.device_free_bytes !== null && (
          <>
            <dt>Driver</dt>
            <dd>
              <Bytes n={row.device_free_bytes} field="event.device_free_bytes" /> free
            </dd>
          </>
        )}
      </dl>
      <p class="links">
        <Go screen="timeline" change={{ event: at }}>
          Timeline
        </Go>
        <Go screen="segments" change={{ event: at }}>
          Segments
        </Go>
        <Go screen="stacks" change={{ event: at, mode: null }}>
          Stacks
        </Go>
      </p>
      {row.alloc === null && (
        <>
          <h3>Call stack</h3>
          <Stack frames={row.frames ?? null} />
        </>
      )}
      {event.value === null && <p class="muted small-text">Shown because nothing else is selected: the last failure, or the peak.</p>}
    </section>
  );
}
