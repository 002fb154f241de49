// Events: a virtual list of any length, filtered and walked through by jumps.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { EventPanel } from '../events/panel';
import { Source } from '../events/source';
import { address, count, plural, pool, seconds, stream } from '../format';
import { useKeys } from '../keys';
import { Bytes, Empty, Field, pattern, Select, Trouble, Wait } from '../parts/basic';
import { BlockPanel } from '../parts/block';
import { Side } from '../parts/side';
import { place, put, run } from '../route';
import { meta, moment, say, select } from '../state';
import type { EventRow, Meta } from '../types/view.gen';

const rowHeight = 22;

// Browsers do not scroll beyond some ten million pixels: a longer list is mapped
// onto that height, and the wheel moves by rows.
const tallest = 8e6;

const actions = [
  { value: '', text: 'all' },
  { value: 'alloc', text: 'alloc' },
  { value: 'free', text: 'free' },
  { value: 'free_requested', text: 'free_requested' },
  { value: 'free_completed', text: 'free_completed' },
  { value: 'segment', text: 'segment' },
  { value: 'segment_alloc', text: 'segment_alloc' },
  { value: 'segment_free', text: 'segment_free' },
  { value: 'segment_map', text: 'segment_map' },
  { value: 'segment_unmap', text: 'segment_unmap' },
  { value: 'oom', text: 'oom' },
  { value: 'snapshot', text: 'snapshot' },
];

const filterKeys = ['action', 'stack', 'min_size', 'max_size', 'stream', 'pool', 'addr'];

export function Events() {
  const m = meta.value.data;
  if (!m) return <Wait>Asking what there is</Wait>;
  if (m.events === 0) return <Empty>The file has no events: recording was off. The overview shows what it has.</Empty>;
  const params = place.value.params;
  const filter: Record<string, string> = {};
  for (const k of filterKeys) if (params[k]) filter[k] = params[k]!;
  const key = JSON.stringify([run.value, filter]);
  return (
    <div class="events">
      <Tools m={m} />
      <div class="with-side">
        <List key={key} filter={filter} />
        <Side>
          <EventPanel />
          <BlockPanel hint="An event of a block selects the block too." />
        </Side>
      </div>
    </div>
  );
}

function Tools({ m }: { m: Meta }) {
  const p = place.value.params;
  const set = (key: string) => (v: string) => put({ [key]: v });
  const on = filterKeys.some((k) => p[k]);
  return (
    <div class="tools" role="toolbar" aria-label="Events">
      <Select label="action" name="action" value={p['action'] ?? ''} options={actions} onPick={set('action')} />
      <Field
        label="stack"
        name="stack"
        placeholder="regular expression"
        value={p['stack'] ?? ''}
        onText={set('stack')}
        wrong={pattern(p['stack'] ?? '').wrong}
        width={22}
      />
      <Field label="from" name="min_size" placeholder="1MiB" value={p['min_size'] ?? ''} onText={set('min_size')} width={6} />
      <Field label="to" name="max_size" placeholder="any size" value={p['max_size'] ?? ''} onText={set('max_size')} width={6} />
      <Field label="address" name="addr" placeholder="0x7f…" value={p['addr'] ?? ''} onText={set('addr')} width={13} />
      {m.streams.length > 1 && (
        <Select
          label="stream"
          name="stream"
          value={p['stream'] ?? ''}
          options={[{ value: '', text: 'all' }, ...m.streams.map((s) => ({ value: String(s), text: stream(s) }))]}
          onPick={set('stream')}
        />
      )}
      {m.pools.length > 1 && (
        <Select
          label="pool"
          name="pool"
          value={p['pool'] ?? ''}
          options={[{ value: '', text: 'all' }, ...m.pools.map((q) => ({ value: q.join(','), text: pool(q) }))]}
          onPick={set('pool')}
        />
      )}
      {on && <button onClick={() => put(Object.fromEntries(filterKeys.map((k) => [k, null])), 'push')}>Clear</button>}
      <span class="grow" />
      <Field
        label="go to event"
        name="goto"
        value=""
        width={9}
        onText={(v) => {
          const n = Number(v.replaceAll(',', ''));
          if (v.trim() !== '' && Number.isFinite(n)) select(n);
        }}
      />
    </div>
  );
}

function List({ filter }: { filter: Record<string, string> }) {
  const scroller = useRef<HTMLDivElement>(null);
  const version = useSignal(0);
  const first = useSignal(0); // first row in view, with a fraction
  const visible = useSignal(30);
  const error = useSignal<string | null>(null);
  const source = useMemo(
    () =>
      new Source(filter, (text) => {
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
    const i = await source.position(at ?? 0);
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
        keys: ['g'],
        text: 'Go to an event by its number',
        run: () => document.querySelector<HTMLInputElement>('input[name=goto]')?.focus(),
      },
    ],
    [n, at, most],
  );

  const from = Math.floor(first.value);
  const rows = [];
  for (let i = from; i < Math.min(n, from + visible.value + 2); i++) rows.push({ i, row: source.row(i) });
  return (
    <div class="list-box">
      {error.value && <Trouble>{error.value}</Trouble>}
      <div class="caption muted" data-field="matches" data-value={n}>
        {source.length < 0
          ? 'Searching'
          : Object.keys(filter).length > 0
            ? `${plural(n, 'event')} of ${count(meta.value.data!.events)} match`
            : plural(n, 'event')}
      </div>
      <div class="list" ref={scroller} tabIndex={0} role="table" aria-label="Events" aria-rowcount={n + 1} data-keys="screen">
        <div class="list-head" role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {['event', 'time', 'action', 'size', 'address', 'stream', 'reserved', 'allocated', 'call site'].map((h) => (
              <span role="columnheader" class={'c-' + h.replace(' ', '-')}>
                {h}
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
              <Row key={i} i={i} row={row} selected={row !== undefined && row.event === at} onPick={pick} />
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
      <span role="cell" class="c-action">
        {row.action}
      </span>
      <span role="cell" class="c-size">
        {row.size_bytes === null ? '-' : <Bytes n={row.size_bytes} />}
      </span>
      <span role="cell" class="c-address mono">
        {row.address === null ? '-' : address(row.address)}
      </span>
      <span role="cell" class="c-stream mono">
        {row.stream === null ? '-' : stream(row.stream)}
      </span>
      <span role="cell" class="c-reserved">
        {row.reserved_bytes === null ? '-' : <Bytes n={row.reserved_bytes} />}
      </span>
      <span role="cell" class="c-allocated">
        {row.allocated_bytes === null ? '-' : <Bytes n={row.allocated_bytes} />}
      </span>
      <span role="cell" class="c-call-site mono" title={row.site ?? ''}>
        {row.site ?? ''}
      </span>
    </div>
  );
}
