// The rest of the answer of explain: who holds and who pins the memory, and
// what else stands out.

import { count, percent, plural } from '../format';
import { Bytes, Go, noStack, Panel, Stack } from '../parts/basic';
import { show } from '../route';
import { explain, select } from '../state';
import type { Block as Part, Document as Explain } from '../types/explain.gen';

export function Pinners() {
  const x = explain.value.data;
  if (!x || x.pinners.length === 0) return null;
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
        <span class="site" data-site>
          {part.site ?? noStack}
        </span>
        {category && <span class="tag">{category.replaceAll('_', ' ')}</span>}
      </summary>
      <Stack frames={part.stack} />
    </details>
  );
}

export function Holders() {
  const x = explain.value.data;
  if (!x || x.holders.length === 0) return null;
  const total = x.categories.reduce((sum, c) => sum + c.bytes, 0);
  const failed = x.failure?.event != null;
  return (
    <Panel
      title={`Who holds the memory ${failed ? 'when it failed' : x.health?.peaks_at_least ? 'at the peak of the events that are there' : 'at the peak'}`}
      name="holders"
      aside={
        <button class="link" onClick={() => openStacks(x)}>
          as a graph
        </button>
      }
    >
      {x.categories.length > 0 && <Categories x={x} total={total} />}
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

function Categories({ x, total }: { x: Explain; total: number }) {
  return (
    <table class="bars">
      <caption class="hidden">Allocated memory by category</caption>
      <tbody>
        {x.categories.map((c) => (
          <tr>
            <th scope="row">{c.category.replaceAll('_', ' ')}</th>
            <td class="right">
              <Bytes n={c.bytes} />
            </td>
            <td class="right muted">{percent(c.bytes / total, 0)}</td>
            <td class="meter-cell">
              <meter min={0} max={total} value={c.bytes} aria-label={`${c.category}: ${percent(c.bytes / total, 0)}`} />
            </td>
            <td class="muted">{c.confidence}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Findings() {
  const x = explain.value.data;
  if (!x || x.findings.length === 0) return null;
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

export function Notes() {
  const notes = explain.value.data?.notes ?? [];
  if (notes.length === 0) return null;
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
