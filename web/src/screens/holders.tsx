// The rest of the answer of explain: who holds and who pins the memory, and
// what else stands out.

import { useSignal } from '@preact/signals';
import { count, percent, plural, size } from '../format';
import { css, indexed, plainName } from '../palette';
import { Bytes, Choice, Empty, Go, noStack, Panel, Stack, Swatch, Trouble, Wait } from '../parts/basic';
import { place, put, run, show, type Change } from '../route';
import { load, meta, select, stats } from '../state';
import { theme } from '../theme';
import type { Block as Part, Document as Explain } from '../types/explain.gen';
import type { Legend, LegendEntry, Meta } from '../types/view.gen';

// Held is who holds the memory when the run failed, or at its peak, as one bar.
export function Held() {
  const m = meta.value.data;
  if (!m) return null;
  const by = place.value.params['held'] ?? m.default_color;
  const failed = m.ooms[m.ooms.length - 1];
  const at = failed !== undefined ? { event: failed } : m.events > 0 ? { peak: 1 } : { event: -1 };
  const got = load<Legend>('legend', { run: run.value, color: by, ...at }).value;
  return (
    <Panel
      title={`Who holds the memory ${failed !== undefined ? 'when it failed' : m.events === 0 ? 'when the file was written' : stats.value.data?.snapshot?.truncated ? 'at the peak of the events that are there' : 'at the peak'}`}
      name="held"
      aside={
        <Choice
          label="By"
          value={by}
          options={[
            { value: 'category', text: 'category' },
            { value: 'stack', text: 'call stack' },
          ]}
          onPick={(v) => put({ held: v === m.default_color ? null : v })}
        />
      }
    >
      {got.error && <Trouble>{got.error}</Trouble>}
      {!got.data && !got.error && <Wait>Adding up</Wait>}
      {got.data && (got.data.total_bytes > 0 ? <Bar l={got.data} m={m} failed={failed ?? null} /> : <Empty>Nothing is allocated.</Empty>)}
    </Panel>
  );
}

const mostKeys = 8;

// grow gives a part of the bar its size.
function grow(el: HTMLElement | null, bytes: number, colour = ''): void {
  if (!el) return;
  el.style.flexGrow = String(bytes);
  el.style.background = colour;
}

function Bar({ l, m, failed }: { l: Legend; m: Meta; failed: number | null }) {
  const hot = useSignal<number | null>(null);
  const paint = indexed(l.color === 'category' ? 'category' : 'stack', theme.value, m);
  const parts = l.entries.filter((e) => e.bytes > 0);
  const name = (e: LegendEntry) => (l.color === 'category' ? plainName(e.label) : e.label);
  const text = (e: LegendEntry) => `${name(e)}: ${size(e.bytes)}, ${percent(e.bytes / l.total_bytes)}, ${plural(e.blocks, 'block')}`;
  const change = (e: LegendEntry): Change => ({ color: l.color, pick: e.colour, like: null, only: true, ...(failed === null ? {} : { event: failed }) });
  const hover = (e: LegendEntry) => ({ onPointerEnter: () => (hot.value = e.colour), onPointerLeave: () => (hot.value = null) });
  const faint = (e: LegendEntry) => (hot.value !== null && hot.value !== e.colour ? ' faint' : '');
  return (
    <>
      <div class="held-bar" role="img" aria-label={parts.slice(0, mostKeys).map(text).join('; ')}>
        {parts.map((e) => (
          <i
            class={'held-part' + faint(e)}
            title={text(e)}
            data-part={e.label}
            ref={(el) => grow(el, e.bytes, css(paint(e.colour)))}
            onClick={() => show('timeline', change(e))}
            {...hover(e)}
          />
        ))}
        {l.others_bytes > 0 && <i class="held-part" title={`others: ${size(l.others_bytes)}`} ref={(el) => grow(el, l.others_bytes)} />}
      </div>
      <ul class="held-keys">
        {parts.slice(0, mostKeys).map((e) => (
          <li class={'held-key' + faint(e)} data-held={e.label} onFocusIn={() => (hot.value = e.colour)} onFocusOut={() => (hot.value = null)} {...hover(e)}>
            <Go screen="timeline" change={change(e)} title={`${text(e)}: show it alone in the timeline`}>
              <Swatch colour={css(paint(e.colour))} />
              <span class="held-name">{name(e)}</span>
              <Bytes n={e.bytes} />
              <span class="muted">{percent(e.bytes / l.total_bytes, 0)}</span>
            </Go>
          </li>
        ))}
        {parts.length > mostKeys && <li class="muted">and {count(parts.length - mostKeys)} more</li>}
      </ul>
    </>
  );
}

export function Pinners({ x }: { x: Explain }) {
  const at = x.failure?.event ?? null;
  return (
    <Panel
      title="Who pins free memory"
      name="pinners"
      aside={
        at !== null && (
          <Go screen="segments" change={{ event: at, sort: 'stuck' }}>
            in the segments
          </Go>
        )
      }
    >
      <p class="muted small-text">Allocated blocks that keep their segment from being released. First: the most free memory for each byte that would have to move.</p>
      <ul class="rows">
        {x.pinners.slice(0, 8).map((p) => (
          <li>
            <Go screen="segments" change={{ event: at, sort: 'stuck', segment: p.segment, hole: null, alloc: null }} title="Show this segment">
              <Bytes n={p.stuck_bytes} /> free of <Bytes n={p.size_bytes} />
            </Go>
            , pinned by <Bytes n={p.live_bytes} /> in {plural(p.live_blocks, 'block')}
            <ul>
              {p.blocks.slice(0, 2).map((b) => (
                <li class="muted">
                  <StackLine part={b} />
                </li>
              ))}
              {p.blocks.length > 2 && <li class="muted">and {plural(p.blocks.length - 2, 'more call stack')}</li>}
            </ul>
          </li>
        ))}
        {x.pinners.length > 8 && <li class="muted">and {plural(x.pinners.length - 8, 'more segment')}</li>}
      </ul>
    </Panel>
  );
}

// StackLine is a call site that opens to the whole stack.
export function StackLine({ part, category }: { part: Part; category?: string | null }) {
  return (
    <details class="stack-line">
      <summary>
        <span class="bytes">
          <Bytes n={part.bytes} />
        </span>
        <span class="times num">{count(part.blocks)}×</span>
        <span class="site" data-site title={part.site ?? noStack}>
          {part.site ?? noStack}
        </span>
        {category && <span class="tag">{category.replaceAll('_', ' ')}</span>}
      </summary>
      <Stack frames={part.stack} />
    </details>
  );
}

export function Holders({ x }: { x: Explain }) {
  return (
    <Panel
      title="Which lines hold it"
      name="holders"
      aside={
        <button class="link" onClick={() => openStacks(x)}>
          as a graph
        </button>
      }
    >
      {x.lines.length > 0 && (
        <>
          <h3>By line of your code</h3>
          <ul class="rows">
            {x.lines.slice(0, 5).map((l) => (
              <li>
                <StackLine part={{ bytes: l.bytes, blocks: l.blocks, stack: [l.line], site: l.line.text }} />
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>By call stack</h3>
      <ul class="rows">
        {x.holders.slice(0, 10).map((h) => (
          <li>
            <StackLine part={h} category={h.category} />
          </li>
        ))}
        {x.holders.length > 10 && <li class="muted">and {plural(x.holders.length - 10, 'more call stack')}: see Stacks</li>}
      </ul>
    </Panel>
  );
}

function openStacks(x: Explain): void {
  if (x.failure?.event != null) {
    select(x.failure.event);
    show('stacks', { mode: null });
  } else show('stacks', { mode: 'peak' });
}

export function Findings({ x }: { x: Explain }) {
  return (
    <Panel title="Also found" name="findings">
      <ul class="rows">
        {x.findings.map((f) => (
          <li>
            <strong>{f.kind.replaceAll('_', ' ')}</strong> <span class="tag">{f.confidence}</span> {f.detail}
            <ul>
              {f.parts.slice(0, 3).map((p) => (
                <li>
                  <StackLine part={p} />
                </li>
              ))}
              {f.parts.length > 3 && <li class="muted">and {plural(f.parts.length - 3, 'more call stack')}</li>}
            </ul>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function Notes({ notes }: { notes: readonly string[] }) {
  return (
    <Panel title="Notes" name="notes">
      <ul class="rows">
        {notes.map((n) => (
          <li>{n}</li>
        ))}
      </ul>
    </Panel>
  );
}
