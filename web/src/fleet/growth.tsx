// Peaks by commit, and which commit grew.

import { Bytes, Panel, count, delta, place, plural } from '../shared';
import type { CommitGrowth, GrowthDocument, RunGrowth } from '../types/answers.gen';
import type { State } from '../types/fleet.gen';
import { Answered, Bars, RunSelect, To, day, quote, said } from './parts';
import { useAnswer } from './state';

export function GrowthView({ s }: { s: State }) {
  const { of = '' } = place.value.params;
  const answer = useAnswer<GrowthDocument>('fleet/growth', { run: of });
  return (
    <Panel title="Growth by commit" name="growth" aside={answer.data && named(answer.data)}>
      <div class="fleet-tools">
        <RunSelect s={s} run={of} all="all runs" />
      </div>
      <Answered answer={answer} wait="Comparing commits: files of those that grew are read">
        {(d) =>
          d.runs.length === 0 ? (
            <p class="empty">No file says its run and commit: give them to ashlar fleet add, or let the recorder write them.</p>
          ) : (
            d.runs.map((r) => <Run key={r.run} r={r} alone={of !== ''} />)
          )
        }
      </Answered>
    </Panel>
  );
}

function named(d: GrowthDocument): string {
  const grew = d.runs.reduce((n, r) => n + r.commits.filter((c) => c.grew).length, 0);
  return grew === 0 ? 'no commit grew' : `${plural(grew, 'commit')} grew`;
}

function Run({ r, alone }: { r: RunGrowth; alone: boolean }) {
  const most = Math.max(...r.commits.map((c) => Math.max(c.peak_reserved_bytes ?? 0, c.peak_allocated_bytes ?? 0)));
  return (
    <section class="fleet-run" data-run={r.run}>
      <h3>
        {alone ? r.run : <To change={{ of: r.run }}>{r.run}</To>}{' '}
        <To change={{ view: 'ranks', of: r.run, launch: null }} title="Compare the ranks of this run">
          ranks
        </To>{' '}
        <To change={{ view: null, where: `run = ${quote(r.run)}`, group: null, show: null, sort: null }}>files</To>
      </h3>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Commits of ${r.run}`}>
        <table class="grid fleet-growth">
          <thead>
            <tr>
              <th scope="col">Commit</th>
              <th scope="col">First seen</th>
              <th scope="col" class="right">
                Ranks
              </th>
              <th scope="col" class="right">
                Failed
              </th>
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
                Change
              </th>
            </tr>
          </thead>
          <tbody>
            {r.commits.map((c) => (
              <Commit c={c} most={most} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Commit({ c, most }: { c: CommitGrowth; most: number }) {
  return (
    <>
      <tr data-commit={c.commit}>
        <th scope="row">{c.commit.slice(0, 12)}</th>
        <td class="num">{day(c.first_seen_us)}</td>
        <td class="right num">{count(c.ranks)}</td>
        <td class="right num">{c.failed > 0 ? count(c.failed) : '-'}</td>
        <td class="right">{c.peak_allocated_bytes === null ? '-' : <Bytes n={c.peak_allocated_bytes} />}</td>
        <td class="right">{c.peak_reserved_bytes === null ? '-' : <Bytes n={c.peak_reserved_bytes} />}</td>
        <td class="fleet-wide">
          <Bars allocated={c.peak_allocated_bytes} reserved={c.peak_reserved_bytes} most={most} />
        </td>
        <td class={'right num' + (c.grew ? ' fails' : '')} title={c.than === null ? undefined : `${said(c.measure ?? '')} from ${c.than}`}>
          {c.delta_bytes === null ? '-' : delta(c.delta_bytes)}
          {c.grew && ' grew'}
        </td>
      </tr>
      {(c.stacks.length > 0 || c.notes.length > 0) && (
        <tr class="fleet-stacks">
          <td colSpan={8}>
            <details open={c.stacks.length > 0 && place.value.params['of'] !== undefined}>
              <summary>
                {c.stacks.length > 0 ? `${plural(c.stacks.length, 'call stack')} grew since ${(c.than ?? '').slice(0, 12)}` : 'notes'}
              </summary>
              <ul class="rows">
                {c.stacks.map((x) => (
                  <li title={x.frames?.map((f) => f.text).join('\n')}>
                    <strong class="num">{delta(x.delta_bytes)}</strong> {said(x.change)}: {x.site ?? 'no call stack'}
                  </li>
                ))}
                {c.notes.map((n) => (
                  <li class="muted">{n}</li>
                ))}
              </ul>
            </details>
          </td>
        </tr>
      )}
    </>
  );
}
