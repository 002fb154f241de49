// Timeline: active bytes stacked by allocation, over time.

import { useEffect, useRef, useState } from 'preact/hooks';
import { count, pool, seconds, span, stream } from '../format';
import { colourings } from '../palette';
import { Check, Choice, Empty, Select, Trouble, Wait } from '../parts/basic';
import { BlockPanel } from '../parts/block';
import { Judged } from '../parts/judged';
import { RangePanel } from '../parts/range';
import { Side } from '../parts/side';
import { event, put } from '../route';
import { meta, summons } from '../state';
import { usePlotKeys } from '../timeline/keys';
import { Alive, Legend, Matched } from '../timeline/legend';
import { MiniMap } from '../timeline/minimap';
import { Plot } from '../timeline/plot';
import { BarTip, Tip } from '../timeline/tip';
import { axis, bringEvent, colourBy, colouring, hasTimes, lookAtAll, moving, param, plain, shown, turn, what, zoomed } from '../timeline/view';
import type { Meta } from '../types/view.gen';

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
        <Side>
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
        </Side>
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
      <Judged kind="stack" label="stack" name="stack" value={param('stack')} onText={set('stack')} width={13} />
      <Judged kind="size" label="from" name="min" placeholder="1MiB" value={param('min')} onText={set('min')} width={5} />
      <Judged kind="size" label="to" name="max" placeholder="any size" value={param('max')} onText={set('max')} width={5} />
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
