// Timeline: live bytes stacked by allocation, over time.

import { useSignal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { count, percent, pool, seconds, size, span, stream } from '../format';
import { useKeys } from '../keys';
import { colourings, css, indexed, legend, plainName } from '../palette';
import { Bytes, Check, Choice, Empty, Field, pattern, Select, Swatch, Trouble, Wait } from '../parts/basic';
import { BlockPanel, lifetime } from '../parts/block';
import { meaning } from '../parts/word';
import { block, put, run } from '../route';
import { allocation, load, meta, moment } from '../state';
import { theme } from '../theme';
import { momentText } from '../timeline/overlay';
import { MiniMap } from '../timeline/minimap';
import { Plot, type Hover } from '../timeline/plot';
import { axis, colourBy, colouring, hasTimes, look, lookAtAll, panBy, param, plain, shown, what, zoomed, zoomX, zoomY } from '../timeline/view';
import type { Events, Legend as Answer, Meta } from '../types/view.gen';

export function Timeline() {
  const m = meta.value.data;
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
          <BlockPanel
            hint={
              what.value === 'blocks'
                ? 'Click a block to see its size, its life and the call stack that allocated it. The wheel zooms, dragging moves.'
                : 'These are segments, over their lives. Point at one to see who made it; click to select the moment.'
            }
          />
          {block.value === null && what.value === 'blocks' && <Alive />}
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
        onPick={(v) => put({ x: v === 'time' ? v : null, from: null, to: null }, 'push')}
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
        <span class="muted" data-field="window" data-from={s.from} data-to={s.to}>
          {axis.value === 'event'
            ? `events ${count(Math.floor(s.from))} to ${count(Math.ceil(s.to))}`
            : `${seconds(s.from)} to ${seconds(s.to)}, ${span(width)}`}
        </span>
        <div class="together">
          <button class="small" onClick={() => zoomX(0.5)} title="Zoom in (+)" aria-label="Zoom in">
            +
          </button>
          <button class="small" onClick={() => zoomX(2)} title="Zoom out (-)" aria-label="Zoom out">
            −
          </button>
          <button class="small" onClick={lookAtAll} disabled={!zoomed.value} title="The whole run (0)">
            All
          </button>
        </div>
        {plot?.feed.busy.value && <span class="spin" role="status" aria-label="Asking for this part" />}
      </div>
      {plot?.feed.error.value && <Trouble>{plot.feed.error.value}</Trouble>}
      <div
        class="plot"
        ref={box}
        tabIndex={0}
        role="application"
        aria-label={`Timeline of active memory, ${axis.value === 'event' ? 'by event' : 'by time'}. Plus and minus zoom, arrows move, 0 shows all.`}
        data-keys="screen"
      >
        <canvas ref={rects} class="rects" key={String(flat)} />
        <canvas ref={over} class="over" />
        {plot && <Tip plot={plot} />}
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
          <li class="alive">
            <Swatch colour={css(of(e.colour))} />
            <Bytes n={e.bytes} />
            <span>{colouring.value === 'category' ? plainName(e.label) : e.label}</span>
          </li>
        ))}
      </ol>
      <p class="muted small-text">
        {size(total)} in all{others > 0 && `, ${size(others)} of it in others`}
      </p>
    </section>
  );
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
        <span class="key requested-line" title="Requested bytes; the rest up to the top is rounding">
          requested
        </span>
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
        <span class="key swatch">
          <Swatch colour={k.colour} />
          {k.text}
        </span>
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
    <div class="tip" ref={place} data-tip>
      <div class="muted">
        {momentText(axis.value, h.at)}: {what.value === 'blocks' && `active ${size(Math.round(h.live))}, `}reserved{' '}
        {size(Math.round(h.reserved))}
        {h.waiting > 0 && `, pending ${size(Math.round(h.waiting))}`}
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
      { keys: ['+', '=', 'w'], shown: '+ w', text: 'Zoom in', run: () => zoomX(0.6) },
      { keys: ['-', 's'], text: 'Zoom out', run: () => zoomX(1 / 0.6) },
      { keys: ['ArrowLeft', 'a'], text: 'Move left', run: () => panBy(-0.2) },
      { keys: ['ArrowRight', 'd'], text: 'Move right', run: () => panBy(0.2) },
      { keys: ['ArrowUp'], text: 'Move up', run: () => panBy(0, 0.2) },
      { keys: ['ArrowDown'], text: 'Move down', run: () => panBy(0, -0.2) },
      { keys: ['W', 'S'], text: 'Zoom in, out on bytes', run: (e: KeyboardEvent) => zoomY(e.key === 'W' ? 0.6 : 1 / 0.6) },
      { keys: ['0', 'Home'], text: 'The whole run', run: lookAtAll },
      { keys: ['f'], text: 'Fit the bytes in view', run: () => plot && fitBytes(plot) },
      { keys: ['z'], text: 'Zoom to the selected block', run: zoomToBlock },
      {
        keys: ['x'],
        text: 'By event or by time',
        run: () => put({ x: axis.value === 'time' ? null : 'time', from: null, to: null }, 'push'),
      },
      { keys: ['c'], text: 'Next way of colouring', run: nextColouring },
      { keys: ['b'], text: 'Blocks or segments', run: () => put({ what: what.value === 'blocks' ? 'segments' : null }, 'push') },
    ],
    [plot],
  );
}

function fitBytes(plot: Plot): void {
  const d = plot.feed.detail;
  if (!d) return;
  let most = 0;
  for (let i = 0; i < d.columns; i++) most = Math.max(most, d.column[i * 4]!);
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
