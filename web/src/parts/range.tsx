// The selected range: what was allocated in it and is still there, what was
// freed, what changed, and who made its peak.

import { useSignal } from '@preact/signals';
import { count, plural, size, span } from '../format';
import { css, indexed, plainName } from '../palette';
import { place, range, run, screen, show, type Range } from '../route';
import { load, meta, pin, selectRange } from '../state';
import { theme } from '../theme';
import { filter, isolate, isolateLike, zoomToRange } from '../timeline/view';
import type { Amount } from '../types/timeline.gen';
import type { Between, Flow } from '../types/view.gen';
import { At, Bytes, Choice, Copy, Delta, Go, Swatch, Trouble, Wait } from './basic';

// The ways to look at a range. Each has the number that a row shows and is
// sorted by.
const views = [
  { value: 'net', text: 'net', of: (f: Flow): Amount => ({ bytes: f.delta_bytes, blocks: f.end.blocks - f.before.blocks }) },
  { value: 'kept', text: 'still alive', of: (f: Flow) => f.kept },
  { value: 'freed', text: 'freed', of: (f: Flow) => f.released },
  { value: 'peak', text: 'at its peak', of: (f: Flow) => f.peak },
] as const;

const mostRows = 30;

export function RangePanel() {
  const r = range.value;
  if (!r) return null;
  return <Selected r={r} />;
}

function Selected({ r }: { r: Range }) {
  const got = load<Between>('between', { run: run.value, ...r, ...filter.value }).value;
  return (
    <section class="range" aria-label="Selected range" data-panel="range" data-after={r.after} data-until={r.until}>
      <h2>
        Events {count(r.after + 1)} to {count(r.until)}
        <button class="plain aside" onClick={() => selectRange(null)} aria-label="Deselect the range" title="Deselect (Esc)">
          ✕
        </button>
      </h2>
      {got.error && <Trouble>{got.error}</Trouble>}
      {!got.data && !got.error && <Wait>Adding up the range</Wait>}
      {got.data && <Answer r={r} b={got.data} />}
    </section>
  );
}

function Answer({ r, b }: { r: Range; b: Between }) {
  const some = Object.keys(filter.value).length > 0;
  return (
    <>
      <p class="muted small-text">
        {plural(b.events, 'event')}
        {b.duration_us !== null && `, ${span(b.duration_us)}`}
        {some && ', of what the filter chooses'}
      </p>
      <dl class="facts">
        <dt title="Allocated in the range and not freed in it">Still alive</dt>
        <dd>
          <Bytes n={b.all.kept.bytes} field="kept_bytes" /> in {plural(b.all.kept.blocks, 'block')}
          {b.all.leaked.blocks > 0 && (
            <span class="pending-text">
              , <Bytes n={b.all.leaked.bytes} field="leaked_bytes" /> never freed
            </span>
          )}
        </dd>
        <dt title="There before the range and freed in it">Freed</dt>
        <dd>
          <Bytes n={b.all.released.bytes} field="released_bytes" /> in {plural(b.all.released.blocks, 'block')}
        </dd>
        <dt>Net</dt>
        <dd>
          <Delta n={b.all.delta_bytes} field="delta_bytes" />, from {size(b.all.before.bytes)} to {size(b.all.end.bytes)}
        </dd>
        <dt>Peak</dt>
        <dd>
          <Bytes n={b.at_peak.active_bytes} field="range_peak_bytes" /> after event {b.at_peak.event < 0 ? '-' : <At event={b.at_peak.event} />}
        </dd>
        <dt title="Allocated and freed within the range">Came and went</dt>
        <dd>
          {size(b.all.passing.bytes)} in {plural(b.all.passing.blocks, 'block')}
        </dd>
        <dt>Reserved</dt>
        <dd>
          from {size(b.at_begin.reserved_bytes)} to {size(b.at_end.reserved_bytes)}
        </dd>
      </dl>
      <p class="links wrap">
        <button class="small" onClick={() => zoom(r)} title="Zoom to the range (z)" data-range="zoom">
          Zoom
        </button>
        <Go screen="stacks" change={{ mode: 'area' }} title="The call stacks of the range, bytes × time">
          In Stacks
        </Go>
        <Go
          screen="compare"
          change={{ b: run.value, at: r.after < 0 ? 'start' : String(r.after), bt: String(r.until) }}
          title="What changed from its first moment to its last"
        >
          Compare its ends
        </Go>
        <Copy text={b.command} label="Copy as a command" />
      </p>
      <Rows b={b} />
    </>
  );
}

function zoom(r: Range): void {
  if (screen.value !== 'timeline') show('timeline');
  void zoomToRange(r);
}

function Rows({ b }: { b: Between }) {
  const view = useSignal<(typeof views)[number]['value']>('net');
  const by = useSignal<'stack' | 'category'>('stack');
  const of = views.find((v) => v.value === view.value)!.of;
  const paint = indexed(by.value, theme.value, meta.value.data!);
  const rows = (
    by.value === 'stack'
      ? b.stacks.map((s) => ({ f: s as Flow, name: s.site, colour: s.colour, alloc: s.alloc as number | null }))
      : b.categories.map((c) => ({ f: c as Flow, name: plainName(c.category), colour: c.colour, alloc: null }))
  )
    .filter((row) => of(row.f).bytes !== 0 || of(row.f).blocks !== 0)
    .sort((x, y) => Math.abs(of(y.f).bytes) - Math.abs(of(x.f).bytes));
  const rest = rows.length - mostRows + (by.value === 'stack' ? b.other_stacks : 0);
  const { like, pick } = place.value.params;
  return (
    <>
      <div class="range-views">
        <Choice label="What of the range" value={view.value} options={views} onPick={(v) => (view.value = v as typeof view.value)} />
        <Choice
          label="Added up by"
          value={by.value}
          options={[
            { value: 'stack', text: 'stack' },
            { value: 'category', text: 'category' },
          ]}
          onPick={(v) => (by.value = v as typeof by.value)}
        />
      </div>
      <ol class="leaves" data-rows={view.value}>
        {rows.slice(0, mostRows).map(({ f, name, colour, alloc }) => (
          <li class="alive-row">
            <button
              class="alive"
              onClick={() => (alloc === null ? isolate('category', colour) : isolateLike(alloc))}
              aria-pressed={alloc === null ? pick === String(colour) : like === String(alloc)}
              title={`${name}: show it alone`}
              data-row-bytes={of(f).bytes}
            >
              <Swatch colour={css(paint(colour))} />
              {view.value === 'net' ? <Delta n={of(f).bytes} /> : <Bytes n={of(f).bytes} />}
              <span>
                {name} <span class="muted">{view.value === 'net' ? signed(of(f).blocks) : `× ${count(of(f).blocks)}`}</span>
              </span>
            </button>
            {alloc !== null && (
              <button class="plain" onClick={() => pin(alloc)} title="One of its blocks, with its call stack" aria-label="One of its blocks">
                ›
              </button>
            )}
          </li>
        ))}
      </ol>
      {rows.length === 0 && <p class="muted small-text">Nothing.</p>}
      {rest > 0 && <p class="muted small-text">and {plural(rest, 'more stack')}</p>}
    </>
  );
}

function signed(n: number): string {
  return n > 0 ? `+${count(n)} blocks` : n < 0 ? `−${count(-n)} blocks` : '';
}
