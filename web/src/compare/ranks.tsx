// Which run is odd, and where the runs part.

import type { Signal } from '@preact/signals';
import { count, delta, percent, plural } from '../format';
import { Bytes, noStack, Panel, Stack } from '../parts/basic';
import { Swatch } from '../parts/lines';
import type { LineStyle } from '../palette';
import { visit } from '../route';
import type { Run } from '../types/view.gen';
import type { Odd, Rank, RanksDocument as Ranks } from '../types/diff.gen';

const names: Record<string, string> = {
  peak_allocated: 'peak allocated',
  peak_requested: 'peak requested',
  peak_reserved: 'peak reserved',
  fragmentation: 'fragmentation',
  oom_events: 'failed requests',
  events: 'events',
};

// usedMemory is what the ranks are compared by: block sizes are not always known.
export function usedMemory(r: Ranks | null): { title: string; measure: string; of: (k: Rank) => number | null } {
  return r?.sizes === 'requested'
    ? { title: 'Peak requested', measure: 'peak_requested', of: (k) => k.peak_requested_bytes }
    : { title: 'Peak allocated', measure: 'peak_allocated', of: (k) => k.peak_allocated_bytes };
}

export function RankTable({
  r,
  runs,
  styles,
  off,
  hot,
  onOff,
}: {
  r: Ranks;
  runs: readonly Run[];
  styles: readonly LineStyle[];
  off: ReadonlySet<number>;
  hot: Signal<number | null>; // the run under the pointer
  onOff: (id: number, off: boolean) => void;
}) {
  const used = usedMemory(r);
  const odd = (rank: number, m: string) => r.odd.find((o) => o.rank === rank && o.measure === m);
  return (
    <Panel title="Runs" name="ranks" aside={oddText(r)}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
        <table class="grid rank-table">
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col" class="right">
                {used.title}
              </th>
              <th scope="col" class="right">
                Peak reserved
              </th>
              <th scope="col" class="right" title="Peak reserved minus peak allocated">
                Fragmentation
              </th>
              <th scope="col" class="right">
                Failed
              </th>
              <th scope="col" class="right">
                Events
              </th>
              <th scope="col" class="right" title="Its first call that is not the majority's">
                Parts at
              </th>
            </tr>
          </thead>
          <tbody>
            {r.ranks.map((k, i) => {
              const run = runs[i]!;
              return (
                <tr
                  data-rank={i}
                  class={r.odd.some((o) => o.rank === i) ? 'odd' : ''}
                  onPointerEnter={() => (hot.value = run.id)}
                  onPointerLeave={() => (hot.value = null)}
                >
                  <th scope="row">
                    <label class="rank-name">
                      <input
                        type="checkbox"
                        checked={!off.has(run.id)}
                        onChange={(e) => onOff(run.id, !e.currentTarget.checked)}
                        aria-label={`Draw ${run.label}`}
                        title="Draw its curve"
                      />
                      <Swatch {...styles[i]!} />
                      <span>{run.label}</span>
                      {k.partial && <span class="tag">cut off</span>}
                    </label>
                  </th>
                  <Cell odd={odd(i, used.measure)} value={used.of(k)} field="peak" />
                  <Cell odd={odd(i, 'peak_reserved')} value={k.peak_reserved_bytes} field="peak_reserved_bytes" />
                  <Cell odd={odd(i, 'fragmentation')} value={k.fragmentation_bytes} field="fragmentation_bytes" />
                  <td class={'right num' + (odd(i, 'oom_events') ? ' odd-cell' : '')}>{count(k.oom_events)}</td>
                  <td class={'right num' + (odd(i, 'events') ? ' odd-cell' : '')}>{count(k.events)}</td>
                  <td class="right">
                    <Parts rank={k} run={run} />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <OddList r={r} runs={runs} />
    </Panel>
  );
}

// OddList says which runs stand out, and in what.
export function OddList({ r, runs }: { r: Ranks; runs: readonly Run[] }) {
  if (r.odd.length === 0) return null;
  return (
    <ul class="rows odd-list" data-panel="odd">
      {r.odd.map((o) => (
        <li>
          <strong>{runs[o.rank]!.label}</strong> stands out in {names[o.measure] ?? o.measure}: {away(o)}
        </li>
      ))}
    </ul>
  );
}

// Cell is empty while its value is on its way.
export function Cell({ odd, value, field }: { odd: Odd | undefined; value: number | null | undefined; field: string }) {
  return (
    <td class={'right' + (odd ? ' odd-cell' : '')} title={odd ? `stands out: ${away(odd)}` : undefined}>
      {value !== undefined && <Bytes n={value} field={field} />}
    </td>
  );
}

function away(o: Odd): string {
  const part = o.delta_fraction === null ? '' : ` (${o.delta_fraction > 0 ? '+' : ''}${percent(o.delta_fraction)})`;
  const bytes = o.delta_bytes;
  if (bytes !== null) return `${delta(bytes)}${part} from the median`;
  return `${(o.delta_count ?? 0) > 0 ? '+' : ''}${count(o.delta_count ?? 0)}${part} from the median`;
}

export function oddText(r: Ranks): string {
  const odd = new Set(r.odd.map((o) => o.rank)).size;
  if (odd === 0) return r.ranks.length > 2 ? 'none stands out' : '';
  return `${count(odd)} of ${plural(r.ranks.length, 'run')} ${odd === 1 ? 'stands' : 'stand'} out`;
}

function Parts({ rank, run }: { rank: Rank; run: Run }) {
  const at = rank.diverges_at_event;
  if (at === null) return <span class="muted">-</span>;
  return (
    <button class="link num" title="Look at this event of that run" onClick={() => visit(run.id, 'events', { event: at })}>
      {count(at)}
    </button>
  );
}

// Divergence is the first call at which not all do the same.
export function Divergence({ r, runs }: { r: Ranks; runs: readonly Run[] }) {
  const d = r.divergence;
  return (
    <Panel title="Where the runs diverge" name="divergence" aside={r.calls_shifted ? 'they begin at different moments' : ''}>
      {!r.calls_compared && <p class="muted">Fewer than two of the runs have events: there are no calls to compare.</p>}
      {r.calls_compared && !d && (
        <p>
          All {plural(r.calls_in_common, 'call')} are the same: the same sizes allocated and freed in the same order.
        </p>
      )}
      {d && (
        <>
          <p>
            <span data-field="calls_in_common" data-value={d.calls_in_common}>
              {plural(d.calls_in_common, 'call')}
            </span>{' '}
            are the same, then {d.majority ? 'the majority' : 'some'} and the others do something else:
          </p>
          <ul class="rows">
            {d.branches.map((b, i) => (
              <li data-branch={i}>
                <details class="stack-line">
                  <summary>
                    <span class="bytes">
                      <Bytes n={b.size_bytes} field="branch.size_bytes" />
                    </span>
                    <span class="times">{b.call}</span>
                    <span class="site" data-site title={b.site ?? noStack}>
                      {b.site ?? noStack}
                    </span>
                  </summary>
                  <Stack frames={b.frames} />
                </details>
                <p class="branch-runs muted small-text">
                  {who(b.ranks, runs)};{' '}
                  <button class="link" onClick={() => visit(runs[b.ranks[0]!]!.id, 'timeline', { event: b.event })}>
                    event {count(b.event)} in the timeline
                  </button>
                </p>
              </li>
            ))}
          </ul>
        </>
      )}
      {r.notes.length > 0 && (
        <ul class="rows muted small-text">
          {r.notes.map((n) => (
            <li>{n}</li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function who(ranks: readonly number[], runs: readonly Run[]): string {
  const some = ranks.slice(0, 3).map((i) => runs[i]!.label);
  return ranks.length > 3 ? `${some.join(', ')} and ${count(ranks.length - 3)} more` : some.join(', ');
}
