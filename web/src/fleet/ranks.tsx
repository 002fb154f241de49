// The ranks of a run, launch by launch.

import { Cell, Panel, count, delta, percent, place, plural } from '../shared';
import type { Launch, OddRank, RanksDocument } from '../types/answers.gen';
import type { State } from '../types/fleet.gen';
import { Answered, Bars, FileLink, RunSelect, To, said, shortPath } from './parts';
import { useAnswer } from './state';

export function RanksView({ s }: { s: State }) {
  const run = place.value.params['of'] ?? s.runs[0]?.run;
  if (run === undefined) return <p class="empty">No file says its run: give it to ashlar fleet add --run, or let the recorder write it.</p>;
  return <Ranks key={run} s={s} run={run} />;
}

function Ranks({ s, run }: { s: State; run: string }) {
  const answer = useAnswer<RanksDocument>('fleet/ranks', { run });
  return (
    <Panel title={`Ranks of ${run}`} name="ranks" aside={answer.data && oddText(answer.data)}>
      <div class="fleet-tools">
        <RunSelect s={s} run={run} />
      </div>
      <Answered answer={answer} wait="Comparing the ranks">
        {(d) => (
          <>
            {d.odd.length > 0 && (
              <ul class="rows odd-list" data-panel="odd">
                {d.odd.map((o) => (
                  <li>
                    <FileLink hash={o.hash}>{o.rank === null ? o.file : `rank ${o.rank}`}</FileLink> of {launchName(o)} stands out in {said(o.measure)}: {away(o)}
                  </li>
                ))}
              </ul>
            )}
            <Launches d={d} />
          </>
        )}
      </Answered>
    </Panel>
  );
}

function oddText(d: RanksDocument): string {
  return d.odd.length === 0 ? 'none stands out' : plural(new Set(d.odd.map((o) => o.hash)).size, 'odd rank');
}

function away(o: OddRank): string {
  const part = o.delta_fraction === null ? '' : ` (${o.delta_fraction > 0 ? '+' : ''}${percent(o.delta_fraction)})`;
  return `${o.delta_bytes !== null ? delta(o.delta_bytes) : count(o.delta_count ?? 0)}${part} from the median`;
}

function launchName(l: { commit: string | null; attempt: number | null }): string {
  const commit = l.commit === null ? 'no commit' : l.commit.slice(0, 12);
  return l.attempt === null ? commit : `${commit} attempt ${l.attempt}`;
}

function launchKey(l: Launch): string {
  return `${l.commit ?? ''}.${l.attempt ?? ''}`;
}

// begins is the launch that is shown unless another is chosen: the last one with an
// odd rank, else the last one with several ranks.
function begins(all: readonly Launch[]): Launch {
  const latest = [...all].reverse();
  return latest.find((l) => l.odd.length > 0) ?? latest.find((l) => l.ranks.length > 1) ?? latest[0]!;
}

// Launches names all, and shows one.
function Launches({ d }: { d: RanksDocument }) {
  const asked = place.value.params['launch'];
  const shown = d.launches.find((l) => launchKey(l) === asked) ?? begins(d.launches);
  return (
    <>
      <p class="fleet-examples small-text">
        {d.launches.map((l) => (
          <To change={{ launch: launchKey(l) }} on={l === shown} name={launchKey(l)}>
            {launchName(l)}
            {l.odd.length > 0 && <span class="tag odd-tag">{new Set(l.odd.map((o) => o.rank)).size} odd</span>}
            {l.failed > 0 && <span class="tag">{count(l.failed)} failed</span>}
          </To>
        ))}
      </p>
      <LaunchTable l={shown} />
    </>
  );
}

function LaunchTable({ l }: { l: Launch }) {
  const most = Math.max(...l.ranks.map((r) => Math.max(r.peak_reserved_bytes, r.peak_allocated_bytes ?? 0)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Ranks of ${launchName(l)}`}>
      <table class="grid rank-table">
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col" class="right">
              Peak allocated
            </th>
            <th scope="col" class="right">
              Peak reserved
            </th>
            <th scope="col" class="fleet-wide">
              <span class="key allocated">allocated</span> <span class="key reserved">reserved</span>
            </th>
            <th scope="col" class="right">
              Frag
            </th>
            <th scope="col" class="right">
              OOMs
            </th>
            <th scope="col" class="right">
              Events
            </th>
            <th scope="col">File</th>
          </tr>
        </thead>
        <tbody>
          {l.ranks.map((r, i) => {
            const odd = (measure: string) => l.odd.find((o) => o.rank === i && o.measure === measure);
            return (
              <tr key={r.hash} data-rank={r.rank ?? i} class={l.odd.some((o) => o.rank === i) ? 'odd' : ''}>
                <th scope="row">{r.rank === null ? r.name : `rank ${r.rank}`}</th>
                <Cell odd={odd('peak_allocated')} value={r.peak_allocated_bytes} field="peak_allocated_bytes" />
                <Cell odd={odd('peak_reserved')} value={r.peak_reserved_bytes} field="peak_reserved_bytes" />
                <td class="fleet-wide">
                  <Bars allocated={r.peak_allocated_bytes} reserved={r.peak_reserved_bytes} most={most} />
                </td>
                <td class={'right num' + (odd('fragmentation') ? ' odd-cell' : '')}>{r.fragmentation === null ? '-' : percent(r.fragmentation)}</td>
                <td class={'right num' + (odd('oom_events') ? ' odd-cell' : '')}>{count(r.oom_events)}</td>
                <td class={'right num' + (odd('events') ? ' odd-cell' : '')}>{count(r.events)}</td>
                <td class="fleet-text" title={r.file}>
                  <FileLink hash={r.hash}>{shortPath(r.file)}</FileLink>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
