// Timeline: active bytes stacked by allocation, over time.

import { useSignal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { count, percent, plural, pool, seconds, size, span, stream } from '../format';
import { useKeys } from '../keys';
import { colourings, css, indexed, legend, plainName } from '../palette';
import { At, Bytes, Check, Choice, Empty, Field, pattern, Select, Swatch, Trouble, Wait } from '../parts/basic';
import { BlockPanel, lifetime } from '../parts/block';
import { RangePanel } from '../parts/range';
import { meaning } from '../parts/word';
import { block, event, put, range, run } from '../route';
import { allocation, load, meta, moment, select, summons } from '../state';
import { theme } from '../theme';
import { MiniMap } from '../timeline/minimap';
import { columnFloats } from '../timeline/picture';
import { Plot, type Hover } from '../timeline/plot';
import {
  asked,
  axis,
  bringEvent,
  colourBy,
  colouring,
  extend,
  filtered,
  hasTimes,
  isolate,
  lit,
  look,
  lookAtAll,
  matches,
  moving,
  only,
  panBy,
  param,
  plain,
  shown,
  toStep,
  turn,
  what,
  zoomed,
  zoomToMoment,
  zoomToRange,
  zoomY,
} from '../timeline/view';
import type { Events, Legend as Answer, Meta } from '../types/view.gen';

export function Timeline() {
  const m = meta.value.data;
  const e = event.value;
  const summoned = summons.value;
  useEffect(() => {
    if (e !== null && m && m.events > 0) void bringEvent(e);
  }, [e, summoned, !m]);
  if (!m) return <Wait>Asking what there is</Wait>;
  if (m.events === 0)
    return <Empty>The file has no events: recording was off, so there is no timeline. The overview shows what it has.</Empty>;
  return (
    <div class="timeline">
      <Toolbar m={m} />
      <div class="with-side">
        <div class="plots">
          <PlotArea />
          <MiniMap />
        </div>
        <aside class="side" aria-label="Details">
          <RangePanel />
          <Matched />
          <BlockPanel
            hint={
              what.value === 'blocks'
                ? 'Click a block to see its size, its life and the call stack that allocated it. Drag to select a range: what was allocated in it, what was freed, who made its peak. The wheel zooms; Shift and drag moves.'
                : 'These are segments, over their lives. Point at one to see who made it; click to select the moment.'
            }
          />
          {what.value === 'blocks' && <Alive />}
        </aside>
      </div>
    </div>
  );
}

function Toolbar({ m }: { m: Meta }) {
  const set = (key: string) => (v: string) => put({ [key]: v });
  return (
    <div class="tools" role="toolbar" aria-label="Timeline">
      <Choice
        label="What is stacked"
        value={what.value}
        options={[
          { value: 'blocks', text: 'blocks' },
          { value: 'segments', text: 'segments' },
        ]}
        onPick={(v) => put({ what: v === 'segments' ? v : null }, 'push')}
      />
      <Choice
        label="Horizontal axis"
        value={axis.value}
        options={[{ value: 'event', text: 'by event' }, ...(hasTimes(m) ? [{ value: 'time', text: 'by time' }] : [])]}
        onPick={(v) => void turn(v === 'time' ? v : 'event')}
      />
      <Select
        label="colour"
        name="color"
        value={colouring.value}
        options={colourings.map(([value, text]) => ({ value, text }))}
        onPick={colourBy}
      />
      <Field
        label="stack"
        name="stack"
        placeholder="regex"
        value={param('stack')}
        onText={set('stack')}
        wrong={pattern(param('stack')).wrong}
        width={13}
      />
      <Field label="from" name="min" placeholder="1MiB" value={param('min')} onText={set('min')} width={5} />
      <Field label="to" name="max" placeholder="any size" value={param('max')} onText={set('max')} width={5} />
      {m.streams.length > 1 && (
        <Select
          label="stream"
          name="stream"
          value={param('stream')}
          options={[{ value: '', text: 'all' }, ...m.streams.map((s) => ({ value: String(s), text: stream(s) }))]}
          onPick={set('stream')}
        />
      )}
      {m.pools.length > 1 && (
        <Select
          label="pool"
          name="pool"
          value={param('pool')}
          options={[{ value: '', text: 'all' }, ...m.pools.map((p) => ({ value: p.join(','), text: pool(p) }))]}
          onPick={set('pool')}
        />
      )}
      <Check
        label="alive at the moment"
        name="alive"
        on={param('alive') === '1'}
        onPick={(on) => put({ alive: on })}
        title="Dim what is not alive at the selected moment"
      />
      <Check
        label="never freed"
        name="never"
        on={param('never') === '1'}
        onPick={(on) => put({ never: on })}
        title="Dim what is freed in this file"
      />
      <Check
        label="hide constant"
        name="moving"
        on={moving.value}
        onPick={(on) => put({ moving: on }, 'push')}
        title="Leave out what lives through the whole window, such as weights (u)"
      />
    </div>
  );
}

function PlotArea() {
  const box = useRef<HTMLDivElement>(null);
  const rects = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const [plot, setPlot] = useState<Plot | null>(null);
  const flat = plain.value;
  useEffect(() => {
    const p = new Plot(box.current!, rects.current!, over.current!);
    setPlot(p);
    // For tests: they read what is drawn, to the byte.
    (box.current as unknown as { plot: Plot }).plot = p;
    return () => p.close();
  }, [flat]);
  usePlotKeys(plot);
  const s = shown.value;
  const m = meta.value.data!;
  const width = s.to - s.from;
  return (
    <>
      <div class="caption">
        <Legend m={m} />
        <span class="grow" />
        {plot?.feed.busy.value && <span class="spin" role="status" aria-label="Asking for this part" />}
        <span class="muted" data-field="window" data-from={s.from} data-to={s.to}>
          {axis.value === 'event'
            ? `events ${count(Math.floor(s.from))} to ${count(Math.ceil(s.to))}`
            : `${seconds(s.from)} to ${seconds(s.to)}, ${span(width)}`}
        </span>
        <div class="together">
          <button class="small" onClick={() => plot?.zoom(0.5)} title="Zoom in (+)" aria-label="Zoom in">
            +
          </button>
          <button class="small" onClick={() => plot?.zoom(2)} title="Zoom out (-)" aria-label="Zoom out">
            −
          </button>
          <button class="small" onClick={lookAtAll} disabled={!zoomed.value} title="The whole run (0)">
            All
          </button>
        </div>
      </div>
      <div
        class="plot"
        ref={box}
        tabIndex={0}
        role="application"
        aria-label={`Timeline of active memory, ${axis.value === 'event' ? 'by event' : 'by time'}. Plus and minus zoom, arrows move, Shift and arrows select a range, Enter selects a block, 0 shows all.`}
        data-keys="screen"
      >
        <canvas ref={rects} class="rects" key={String(flat)} />
        <canvas ref={over} class="over" />
        {plot && <Tip plot={plot} />}
        {plot && <BarTip plot={plot} />}
        {plot?.feed.error.value && <Trouble>{plot.feed.error.value}</Trouble>}
      </div>
    </>
  );
}

// Alive says who holds the memory at the moment, by colour.
function Alive() {
  const at = moment.value ?? -1;
  const asked = useSignal(at);
  useEffect(() => {
    // A moment on its way asks for nothing.
    const timer = setTimeout(() => (asked.value = at), 120);
    return () => clearTimeout(timer);
  }, [at]);
  const got = load<Answer>('legend', { run: run.value, color: colouring.value, event: asked.value }).value;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  if (!got.data) return null;
  const { entries, total_bytes: total, others_bytes: others } = got.data;
  const of = indexed(colouring.value, theme.value, meta.value.data!);
  return (
    <section aria-label="Alive at the moment" data-panel="alive">
      <h2>{asked.value < 0 ? 'Alive before the first event' : `Alive after event ${count(asked.value)}`}</h2>
      <ol class="leaves">
        {entries.slice(0, 24).map((e) => (
          <li>
            <button class="alive" {...isolating(e.colour)} title={`${e.label}: show it alone`}>
              <Swatch colour={css(of(e.colour))} />
              <Bytes n={e.bytes} />
              <span>{colouring.value === 'category' ? plainName(e.label) : e.label}</span>
            </button>
          </li>
        ))}
      </ol>
      <p class="muted small-text">
        {size(total)} in all{others > 0 && `, ${size(others)} of it in others`}
      </p>
    </section>
  );
}

// isolating lets an entry of a legend stand out under the pointer and show what
// it stands for alone when it is pressed.
function isolating(colour: number) {
  return {
    onClick: () => isolate(colouring.value, colour),
    onPointerEnter: () => (lit.value = colour),
    onPointerLeave: () => (lit.value = null),
    onFocus: () => (lit.value = colour),
    onBlur: () => (lit.value = null),
    'aria-pressed': param('pick') === String(colour),
    'data-pick': colour,
  };
}

// Matched is what the filter chooses, in numbers, and the ways from one match to
// the next.
function Matched() {
  if (!filtered.value || what.value !== 'blocks') return null;
  const got = matches.value;
  if (!got || (!got.data && !got.error)) return null;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  const d = got.data!;
  return (
    <section aria-label="What the filter chooses" data-panel="matches" data-blocks={d.blocks}>
      <h2>
        {plural(d.blocks, 'block matches', 'blocks match')}
        <span class="together aside">
          <button class="small" disabled={d.previous === null} onClick={() => select(d.previous)} title="Previous match (M)" aria-label="Previous match">
            ‹
          </button>
          <button class="small" disabled={d.next === null} onClick={() => select(d.next)} title="Next match (m)" aria-label="Next match">
            ›
          </button>
        </span>
      </h2>
      {d.blocks > 0 && (
        <p>
          <Bytes n={d.event_bytes} field="match_event_bytes" /> in {plural(d.event_blocks, 'block')} at the moment; at most{' '}
          <Bytes n={d.most_bytes} field="match_most_bytes" />
          {d.most_event !== null && d.most_event >= 0 && (
            <>
              , after event <At event={d.most_event} />
            </>
          )}
        </p>
      )}
      <p class="links">
        <Check
          label="only these"
          name="only"
          on={only.value}
          onPick={(on) => put({ only: on }, 'push')}
          title="Stack what the filter chooses alone, from zero (i)"
        />
        <button class="link" onClick={clearFilter}>
          Clear the filter
        </button>
      </p>
    </section>
  );
}

function clearFilter(): void {
  put({ stack: null, min: null, max: null, stream: null, pool: null, like: null, pick: null, alive: null, never: null, only: null }, 'push');
}

function Legend({ m }: { m: Meta }) {
  const keys = legend(colouring.value, theme.value, m);
  const blocks = what.value === 'blocks';
  return (
    <span class="legend">
      <span class="key reserved-line" title={meaning('reserved')}>
        reserved
      </span>
      {blocks && (
        <span class="key highest-line" title="The highest active memory within each column; blocks are drawn as they are at its end">
          highest
        </span>
      )}
      {blocks && m.exact && (
        <button
          class="key requested-line"
          aria-pressed={asked.value}
          onClick={() => put({ asked: !asked.value })}
          title="Requested bytes, as a line; the rest up to the top is rounding"
          data-line="requested"
        >
          requested
        </button>
      )}
      <span class="key small" title="Those too small to draw, in sum: the height is always that of all bytes">
        small
      </span>
      {blocks && (
        <span class="key pending" title="Freed, but still in use on another stream">
          pending
        </span>
      )}
      {m.at_least && (
        <span class="tag" title="Recording began mid-run, and the file does not contain all that was allocated before">
          lower bounds
        </span>
      )}
      {colouring.value === 'stack' && <span class="muted">a colour for each of the largest 20 call stacks, grey for the others</span>}
      {keys.map((k) => (
        <button class="key swatch" {...isolating(k.index)} title="Show it alone">
          <Swatch colour={k.colour} />
          {k.text}
        </button>
      ))}
    </span>
  );
}

// Tip is the note beside the pointer.
function Tip({ plot }: { plot: Plot }) {
  const h = plot.hover.value;
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
function BarTip({ plot }: { plot: Plot }) {
  const over = plot.bar.value;
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

function usePlotKeys(plot: Plot | null): void {
  useKeys(
    'Timeline',
    () => [
      { keys: ['+', '=', 'w'], shown: '+ w', text: 'Zoom in', run: () => plot?.zoom(0.6) },
      { keys: ['-', 's'], text: 'Zoom out', run: () => plot?.zoom(1 / 0.6) },
      { keys: ['ArrowLeft', 'a'], text: 'Move left; with Shift select a range', run: (e: KeyboardEvent) => (e.shiftKey ? extend(-1) : panBy(-0.2)) },
      { keys: ['ArrowRight', 'd'], text: 'Move right; with Shift select a range', run: (e: KeyboardEvent) => (e.shiftKey ? extend(1) : panBy(0.2)) },
      { keys: ['ArrowUp'], text: 'Move up', run: () => panBy(0, 0.2) },
      { keys: ['ArrowDown'], text: 'Move down', run: () => panBy(0, -0.2) },
      { keys: ['W', 'S'], text: 'Zoom in, out on bytes', run: (e: KeyboardEvent) => zoomY(e.key === 'W' ? 0.6 : 1 / 0.6) },
      { keys: ['0', 'Home'], text: 'The whole run', run: lookAtAll },
      { keys: ['f'], text: 'Fit the bytes in view', run: () => plot && fitBytes(plot) },
      { keys: ['z'], text: 'Zoom to the block, the range or the moment', run: zoomToSelected },
      { keys: ['Enter'], text: 'Select the largest block at the moment', run: () => plot && pickBlock(plot, 'largest') },
      { keys: ['j', 'k'], text: 'Block below, above', run: (e: KeyboardEvent) => plot && pickBlock(plot, e.key === 'k' ? 'above' : 'below') },
      { keys: ['E', 'e'], text: 'Previous, next step', run: (e: KeyboardEvent) => toStep(e.key === 'e' ? 1 : -1) },
      { keys: ['M', 'm'], text: 'Previous, next match of the filter', run: (e: KeyboardEvent) => toMatch(e.key === 'm' ? 'next' : 'previous') },
      { keys: ['i'], text: 'Only what the filter chooses', run: () => put({ only: !only.value }, 'push') },
      { keys: ['u'], text: 'Without what lives through the window', run: () => put({ moving: !moving.value }, 'push') },
      { keys: ['x'], text: 'By event or by time', run: () => hasTimes(meta.value.data) && void turn(axis.value === 'time' ? 'event' : 'time') },
      { keys: ['c'], text: 'Next way of colouring', run: nextColouring },
      { keys: ['b'], text: 'Blocks or segments', run: () => put({ what: what.value === 'blocks' ? 'segments' : null }, 'push') },
    ],
    [plot],
  );
  useKeys('Timeline, with the mouse', () => mouse);
}

const mouse = [
  ['Drag', 'Select a range'],
  ['Shift drag', 'Move (also with the middle button)'],
  ['Wheel', 'Zoom around the pointer; with Alt on bytes, with Shift move'],
  ['Click', 'Select the moment and the block, a step or an annotation'],
  ['Double click', 'Zoom in, or to a step or an annotation'],
].map(([shown, text]) => ({ keys: [], shown: shown!, text: text!, run: () => {} }));

function pickBlock(plot: Plot, which: 'largest' | 'above' | 'below'): void {
  if (!plot.pick(which) && moment.value !== null) void bringEvent(moment.value);
}

function toMatch(which: 'next' | 'previous'): void {
  const found = matches.value?.data?.[which];
  if (found !== null && found !== undefined) select(found);
}

function zoomToSelected(): void {
  if (block.value !== null) zoomToBlock();
  else if (range.value) void zoomToRange(range.value);
  else void zoomToMoment();
}

function fitBytes(plot: Plot): void {
  const d = plot.feed.detail;
  if (!d) return;
  let most = 0;
  for (let i = 0; i < d.columns; i++) most = Math.max(most, d.column[i * columnFloats]!);
  const top = d.yMin + (most * (d.yMax - d.yMin)) / d.height;
  look({ ...shown.value, low: 0, high: top * 1.05 }, 'push');
}

function zoomToBlock(): void {
  const m = meta.value.data;
  const a = block.value === null ? null : allocation(block.value).value.data;
  if (!a || !m) return;
  const time = axis.value === 'time' && m.first_time !== null;
  const begin = time ? (a.alloc_time === null ? 0 : a.alloc_time - m.first_time!) : (a.alloc_event ?? 0);
  const end = time ? (a.free_time === null ? m.last_time! - m.first_time! : a.free_time - m.first_time!) : (a.free_event ?? m.events);
  const room = Math.max(2, (end - begin) * 0.25);
  look({ ...shown.value, from: begin - room, to: end + room }, 'push');
}

function nextColouring(): void {
  const i = colourings.findIndex(([c]) => c === colouring.value);
  colourBy(colourings[(i + 1) % colourings.length]![0]);
}
