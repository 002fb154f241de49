// A virtual list of events of any length, walked through by jumps.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { address, count, delta, exact, plural, seconds, stream } from '../format';
import { useKeys } from '../keys';
import { plainName } from '../palette';
import { Bytes, Empty, Trouble } from '../parts/basic';
import { place, put } from '../route';
import { meta, moment, say } from '../state';
import type { EventRow } from '../types/view.gen';
import { Export } from './export';
import { Source } from './source';

const rowHeight = 22;

// Browsers do not scroll beyond some ten million pixels: a longer list is mapped
// onto that height, and the wheel moves by rows.
const tallest = 8e6;

// The columns; in a narrow window some give way to the call site.
const columns: readonly { name: string; title?: string }[] = [
  { name: 'event' },
  { name: 'time' },
  { name: 'action' },
  { name: 'size' },
  { name: 'category', title: 'What the block is for' },
  { name: 'call site' },
  { name: 'running', title: 'By how much allocated memory changed by the events listed so far' },
  { name: 'allocated' },
  { name: 'reserved' },
  { name: 'address' },
  { name: 'stream' },
];

export function List({ filter, folded }: { filter: Record<string, string>; folded: boolean }) {
  const scroller = useRef<HTMLDivElement>(null);
  const version = useSignal(0);
  const first = useSignal(0); // first row in view, with a fraction
  const visible = useSignal(30);
  const error = useSignal<string | null>(null);
  const source = useMemo(
    () =>
      new Source(filter, folded, (text) => {
        error.value = text;
        version.value++;
      }),
    [],
  );
  useEffect(() => () => source.cancel(), []);
  void version.value;
  const n = Math.max(0, source.length);
  const height = Math.min(tallest, n * rowHeight);
  const most = Math.max(0, n - visible.value);
  const own = useRef(0); // where we scrolled to ourselves

  const scrollTo = (to: number) => {
    const box = scroller.current;
    first.value = Math.max(0, Math.min(most, to));
    if (!box) return;
    const range = box.scrollHeight - box.clientHeight;
    const top = most > 0 ? (first.value / most) * range : 0;
    if (Math.abs(box.scrollTop - top) >= 1) {
      box.scrollTop = top;
      own.current = box.scrollTop;
    }
  };
  useLayoutEffect(() => {
    const box = scroller.current!;
    const resize = () => (visible.value = Math.max(1, Math.floor((box.clientHeight - rowHeight) / rowHeight)));
    const watch = new ResizeObserver(resize);
    watch.observe(box);
    resize();
    return () => watch.disconnect();
  }, []);
  const mapped = n * rowHeight > tallest;
  useLayoutEffect(() => {
    const box = scroller.current!;
    // A browser tells of all scrolling of a frame once: what is to be told apart is
    // where the bar stands, not whose event it is.
    const scroll = () => {
      if (box.scrollTop === own.current) return;
      own.current = box.scrollTop;
      const range = box.scrollHeight - box.clientHeight;
      first.value = range > 0 ? (box.scrollTop / range) * most : 0;
    };
    const wheel = (e: WheelEvent) => {
      if (!mapped || e.ctrlKey) return;
      e.preventDefault();
      scrollTo(first.value + (e.deltaMode === 1 ? e.deltaY : e.deltaY / rowHeight));
    };
    box.addEventListener('scroll', scroll);
    box.addEventListener('wheel', wheel, { passive: false });
    return () => {
      box.removeEventListener('scroll', scroll);
      box.removeEventListener('wheel', wheel);
    };
  }, [mapped, most]);

  source.row(0); // tells the length
  const at = moment.value;
  // The selected event is brought into view, unless it is there already.
  useEffect(() => {
    if (at === null || n === 0) return;
    void source.position(at).then(
      (i) => {
        if (i < first.value || i >= first.value + visible.value - 1) scrollTo(i - Math.floor(visible.value / 3));
      },
      () => {},
    );
  }, [at, n > 0]);

  const pick = (r: EventRow) => put({ event: r.event, alloc: r.alloc }, 'push');
  const moveBy = async (by: number) => {
    const from = place.value;
    const i = await source.position(at ?? 0).catch(() => null);
    if (i === null || place.value !== from) return; // something else is looked at by now
    const target = Math.max(0, Math.min(n - 1, i + by));
    const row = source.row(target);
    if (row) pick(row);
    else say('That part of the list is on its way.');
  };
  useKeys(
    'Events',
    () => [
      { keys: ['ArrowUp', 'ArrowDown'], text: 'Previous, next event of the list', run: (e) => void moveBy(e.key === 'ArrowDown' ? 1 : -1) },
      {
        keys: ['PageUp', 'PageDown'],
        text: 'A screen up, down',
        run: (e) => scrollTo(first.value + (e.key === 'PageDown' ? 1 : -1) * (visible.value - 1)),
      },
      { keys: ['Home', 'End'], text: 'To the first, the last', run: (e) => scrollTo(e.key === 'End' ? n : 0) },
      {
        keys: ['f'],
        text: 'Frees as one row or as two',
        run: () => put({ frees: folded ? 'both' : null }, 'push'),
      },
      {
        keys: ['g'],
        text: 'Go to an event by its number',
        run: () => document.querySelector<HTMLInputElement>('input[name=goto]')?.focus(),
      },
    ],
    [n, at, most],
  );

  const from = Math.floor(first.value);
  const some = Object.keys(filter).length > 0;
  const kind = 'list' + (some ? ' filtered' : '') + (meta.value.data!.streams.length > 1 ? '' : ' one-stream');
  const rows = [];
  for (let i = from; i < Math.min(n, from + visible.value + 2); i++) rows.push({ i, row: source.row(i) });
  return (
    <div class="list-box">
      {error.value && <Trouble>{error.value}</Trouble>}
      <div class="caption">
        <span class="muted" data-field="matches" data-value={source.matches} data-rows={n}>
          {source.length < 0
            ? 'Searching'
            : some
              ? `${plural(source.matches, 'event')} of ${count(meta.value.data!.events)} match`
              : plural(source.matches, 'event')}
          {n < source.matches && `, in ${plural(n, 'row')}: each free is one`}
        </span>
        <span class="grow" />
        <Export filter={filter} />
      </div>
      <div class={kind} ref={scroller} tabIndex={0} role="table" aria-label="Events" aria-rowcount={n + 1} data-keys="screen">
        <div class="list-head" role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {columns.map((h) => (
              <span role="columnheader" class={'c-' + h.name.replace(' ', '-')} title={h.title}>
                {h.name}
              </span>
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          class="list-body"
          ref={(el) => {
            if (el) el.style.height = `${height}px`;
          }}
        >
          <div class="list-window">
            {rows.map(({ i, row }) => (
              <Row key={i} i={i} row={row} selected={row !== undefined && (row.event === at || row.completed_event === at)} onPick={pick} />
            ))}
          </div>
        </div>
      </div>
      {n === 0 && source.length === 0 && !error.value && <Empty>No event matches the filter.</Empty>}
    </div>
  );
}

function Row({ i, row, selected, onPick }: { i: number; row: EventRow | undefined; selected: boolean; onPick: (r: EventRow) => void }) {
  if (!row) {
    return (
      <div class="row" role="row" aria-rowindex={i + 2}>
        <span role="cell" class="muted">
          …
        </span>
      </div>
    );
  }
  const folded = row.completed_event !== null;
  return (
    <div
      class={`row a-${row.action}${selected ? ' on' : ''}`}
      role="row"
      aria-rowindex={i + 2}
      aria-selected={selected}
      onClick={() => onPick(row)}
      data-event={row.event}
    >
      <span role="cell" class="c-event num">
        {count(row.event)}
      </span>
      <span role="cell" class="c-time num">
        {row.since_us === null ? '-' : seconds(row.since_us)}
      </span>
      <span role="cell" class="c-action" title={folded ? `free_requested, then free_completed at event ${count(row.completed_event!)}` : row.action}>
        {folded ? 'free' : row.action}
      </span>
      <span role="cell" class="c-size">
        {row.size_bytes === null ? '-' : <Bytes n={row.size_bytes} />}
      </span>
      <span role="cell" class="c-category" title={row.category ? plainName(row.category) : undefined}>
        {row.category ? plainName(row.category) : ''}
      </span>
      <span role="cell" class="c-call-site mono" title={row.site ?? ''}>
        {row.site ?? ''}
      </span>
      <span role="cell" class="c-running num" title={exact(row.running_bytes)} data-delta={row.running_bytes}>
        {delta(row.running_bytes)}
      </span>
      <span role="cell" class="c-allocated">
        <Bytes n={row.allocated_bytes} />
      </span>
      <span role="cell" class="c-reserved">
        <Bytes n={row.reserved_bytes} />
      </span>
      <span role="cell" class="c-address mono" title={row.address === null ? undefined : address(row.address)}>
        {row.address === null ? '-' : '…' + address(row.address).slice(-7)}
      </span>
      <span role="cell" class="c-stream mono" title={stream(row.stream)}>
        {stream(row.stream)}
      </span>
    </div>
  );
}
