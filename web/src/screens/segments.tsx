// Segments: the allocator's map at any moment.

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { Follower, get, type Query } from '../api';
import { plural } from '../format';
import { css, indexed, legend, momentColourings, type Colouring } from '../palette';
import { Bytes, Choice, Empty, Select, Swatch, Trouble, Wait } from '../parts/basic';
import { BlockPanel } from '../parts/block';
import { Side } from '../parts/side';
import { meaning, Word } from '../parts/word';
import { block, number, place, put, run } from '../route';
import { explain } from '../explained';
import { load, meta, moment } from '../state';
import { colourBy, MapArea, pinnersAt } from '../segments/area';
import { SegmentPanel } from '../segments/details';
import { HolePanel } from '../segments/hole';
import { holeAt, sorted, sorts, sum, type Sort } from '../segments/layout';
import { Play, usePlay } from '../segments/play';
import { RequestStrip } from '../segments/request';
import { Scrub } from '../segments/scrub';
import { variantQuery, VariantLine } from '../segments/variant';
import { theme } from '../theme';
import type { Legend as Answer, Segments as State } from '../types/view.gen';

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
  const by = colouring();
  useEffect(() => {
    if (event !== null && id !== null && m) follow.want({ run: id, event, color: by, ...variant });
  }, [event, id, m, by, JSON.stringify(variant)]);
  usePlay(state.value?.event ?? null);
  if (!m) return <Wait>Asking what there is</Wait>;
  const s = state.value;
  return (
    <div class="segments">
      {m.events > 0 && <Scrub />}
      {variant && <VariantLine failed={s?.first_failure ?? null} />}
      {error.value && <Trouble>{error.value}</Trouble>}
      {!s && !error.value && <Wait>Laying out the segments</Wait>}
      {s && <Layout s={s} late={s.event !== event} by={by} />}
    </div>
  );
}

// colouring is what the address says, else what most bytes are known by.
function colouring(): Colouring {
  const of = (name: string | undefined) => momentColourings.find(([c]) => c === name)?.[0];
  return of(place.value.params['color']) ?? of(meta.value.data?.default_color) ?? 'stack';
}

function Layout({ s, late, by }: { s: State; late: boolean; by: Colouring }) {
  const params = place.value.params;
  const sort = (sorts.find(([k]) => k === params['sort'])?.[0] ?? 'size') as Sort;
  const stretched = params['bars'] === 'stretched';
  const rows = useMemo(() => sorted(s.segments.map(sum), sort), [s, sort]);
  const chosen = number(params['segment']);
  const row = rows.find((r) => r.segment.address === chosen) ?? null;
  const hole = useMemo(() => holeAt(rows, number(params['hole'])), [rows, params['hole']]);
  const failing = pinnersAt(s.event);
  const pinned = failing ? explain.value.data!.pinners.length : 0;
  return (
    <>
      <div class="tools" role="toolbar" aria-label="Segments">
        <Play />
        <Select
          label="colour"
          name="color"
          value={by}
          options={momentColourings.map(([value, text]) => ({ value, text }))}
          onPick={colourBy}
        />
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
        <span class="grow" />
        <span data-field="segments-event" data-event={s.event} aria-busy={late}>
          {plural(s.segments.length, 'segment')}, <Bytes n={s.reserved_bytes} field="reserved_bytes" /> <Word of="reserved" />,{' '}
          <Bytes n={s.allocated_bytes} field="allocated_bytes" /> <Word of="allocated" />,{' '}
          <Bytes n={s.free_bytes} field="free_bytes" /> <Word of="free" />
        </span>
      </div>
      <MapLegend by={by} pinned={pinned} s={s} />
      <RequestStrip s={s} />
      <div class="with-side">
        {rows.length === 0 ? (
          <Empty>No memory is reserved at this moment.</Empty>
        ) : (
          <MapArea s={s} rows={rows} stretched={stretched} chosen={chosen} hole={hole} by={by} />
        )}
        <Side>
          {block.value === null && <HolePanel hole={hole} s={s} />}
          <SegmentPanel row={row} failing={failing} />
          <BlockPanel hint="Click a block to see its size, its lifetime and its call stack." />
          {block.value !== null && <HolePanel hole={hole} s={s} />}
          {by === 'stack' && block.value === null && <StackColours event={s.event} />}
        </Side>
      </div>
    </>
  );
}

function MapLegend({ by, pinned, s }: { by: Colouring; pinned: number; s: State }) {
  return (
    <div class="caption">
      <span class="legend" data-legend={by}>
        {by === 'stack' && <span class="muted">a colour for each of the largest 20 call stacks, grey for the others</span>}
        {by === 'age' && <span class="muted">allocated so many events ago:</span>}
        {legend(by, theme.value, meta.value.data!).map((k) => (
          <span class="key swatch">
            <Swatch colour={k.colour} />
            {k.text}
          </span>
        ))}
        <span class="key free" title={meaning('free')}>
          free
        </span>
        <span class="key hole" title="The largest free block, or the one that is selected">
          hole
        </span>
        <span class="key beside" title="The allocated blocks at its edges keep the hole from being larger">
          beside the hole
        </span>
        {s.request && (
          <span class="key failed" title="The request that failed, to the scale of the map, from the beginning of the hole">
            failed request
          </span>
        )}
        <span class="key wasted" title="What rounding adds to a request">
          rounding
        </span>
        <span class="key pending" title={meaning('pending')}>
          pending
        </span>
        <span class="key unmapped" title="Addresses of an expandable segment without memory">
          unmapped
        </span>
        {pinned > 0 && (
          <span class="key pinned" title="Segments whose free memory cannot be released, because something in them is allocated">
            pins free memory
          </span>
        )}
      </span>
    </div>
  );
}

// StackColours says which call stacks have a colour of their own.
function StackColours({ event }: { event: number }) {
  const got = load<Answer>('legend', { run: run.value, color: 'stack', event }).value.data;
  if (!got) return null;
  const of = indexed('stack', theme.value, meta.value.data!);
  return (
    <section aria-label="Call stacks by colour" data-panel="stack-colours">
      <h2>Allocated by call stack</h2>
      <ol class="leaves">
        {got.entries.slice(0, 21).map((e) => (
          <li class="alive">
            <Swatch colour={css(of(e.colour))} />
            <Bytes n={e.bytes} />
            <span>{e.label}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
