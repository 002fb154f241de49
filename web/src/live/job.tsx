// One job: its ranks over each other, and which of them stand out.

import { Bytes, Cell, Choice, Panel, Select, Swatch, count, delta, ink, lineStyle, link, percent, place, plural, put, span, theme, useKeys, useSignal } from '../shared';
import type { RunStatus } from '../types/watch.gen';
import type { Job } from '../types/live.gen';
import { AlarmsPanel } from './alarms';
import { Chart, numbers, spans } from './chart';
import { Seen, clock } from './seen';
import { jobs, rankName, several, state } from './state';

// manyRanks is beyond what colours and dashes can distinguish.
const manyRanks = 24;

export function JobScreen({ job, now }: { job: Job; now: number }) {
  const params = place.value.params;
  const hot = useSignal<number | null>(null);
  const off = new Set((params['off'] ?? '').split(',').filter(Boolean));
  const name = params['number'] ?? 'reserved';
  const sessions = new Set(job.ranks.map((r) => r.session));
  const alarms = (state.value?.alarms ?? []).filter((a) => sessions.has(a.session));
  useKeys('Live', () => [
    { keys: ['Escape'], text: 'All jobs', run: () => put({ job: null, from: null, to: null, off: null }, 'push') },
    { keys: ['h', 'l'], text: 'Previous, next job', run: (e) => turn(e.key === 'l' ? 1 : -1) },
  ]);
  const first = job.ranks[0]!;
  const styles = job.ranks.length === 1 ? [{ colour: ink.value.reserved, dash: [] }] : job.ranks.map((_, i) => lineStyle(i, theme.value));
  const key = (r: RunStatus) => `${r.session}/${r.gpu ?? ''}`;
  return (
    <>
      <div class="live-head">
        <a
          href={link('live', { job: null, from: null, to: null, off: null })}
          onClick={(e) => {
            e.preventDefault();
            put({ job: null, from: null, to: null, off: null }, 'push');
          }}
        >
          All jobs
        </a>
        <h2>{job.label}</h2>
        <span class="muted">
          {first.host && `${first.host}, `}
          {sessions.size === 1 ? `pid ${first.pid}` : plural(sessions.size, 'rank')}, since {clock(first.started_us, now)}
        </span>
        {first.source === 'nvml' && (
          <span class="tag">NVML alone: the driver says what the process holds, its context included; it says nothing of itself</span>
        )}
      </div>
      <Panel title={numbers.find((n) => n.value === name)?.text ?? name} name="curves">
        <div class="live-tools">
          <Select
            label="Show"
            name="number"
            value={name}
            options={numbers}
            onPick={(v) => put({ number: v === 'reserved' ? null : v })}
          />
          <Choice
            label="How far back"
            value={params['from'] ? '' : (params['span'] ?? '2h')}
            options={spans.map((s) => ({ value: s.value, text: s.text }))}
            onPick={(v) => put({ span: v === '2h' ? null : v, from: null, to: null })}
          />
          <span class="muted small-text">{params['from'] ? 'This piece stands still: choose a length to go on.' : 'Drag to look closer.'}</span>
        </div>
        <Chart
          job={job}
          name={name}
          now={now}
          alarms={alarms}
          styles={styles}
          shown={job.ranks.map((r, i) => !off.has(key(r)) && (job.ranks.length <= manyRanks || !r.ended || i < manyRanks))}
          hot={hot}
        />
      </Panel>
      <Panel title={job.ranks.length === 1 ? 'Now' : 'Ranks'} name="ranks" aside={oddText(job)}>
        <div class="scroll" tabIndex={0} role="region" aria-label="Ranks">
          <table class="grid rank-table live-ranks">
            <thead>
              <tr>
                <th scope="col">Rank</th>
                <th scope="col">Host</th>
                <th scope="col" class="right">
                  Step
                </th>
                <th scope="col" class="right">
                  Step time
                </th>
                <th scope="col" class="right">
                  Allocated
                </th>
                <th scope="col" class="right">
                  Reserved
                </th>
                <th scope="col" class="right">
                  Frag
                </th>
                <th scope="col" class="right">
                  Headroom
                </th>
                <th scope="col" class="right">
                  Per step
                </th>
                <th scope="col" class="right">
                  Peak allocated
                </th>
                <th scope="col" class="right">
                  Peak reserved
                </th>
                <th scope="col" class="right" title="Allocations that flushed the cache and were tried again">
                  Retries
                </th>
                <th scope="col" class="right">
                  OOMs
                </th>
                <th scope="col">Seen</th>
                <th scope="col">Alarms</th>
              </tr>
            </thead>
            <tbody>
              {job.ranks.map((r, i) => (
                <RankRow
                  key={key(r)}
                  r={r}
                  i={i}
                  job={job}
                  on={!off.has(key(r))}
                  style={styles[i]!}
                  onOver={(over) => (hot.value = over ? i : null)}
                  onDraw={(on) => {
                    if (on) off.delete(key(r));
                    else off.add(key(r));
                    put({ off: [...off].join(',') });
                  }}
                />
              ))}
            </tbody>
          </table>
        </div>
        {job.odd.length > 0 && (
          <ul class="rows odd-list" data-panel="odd">
            {job.odd.map((o) => (
              <li>
                <strong>{rankName(job.ranks[o.rank]!, several(job.ranks))}</strong> stands out in {o.measure.replaceAll('_', ' ')}:{' '}
                {o.delta_bytes !== null ? delta(o.delta_bytes) : count(o.delta_count ?? 0)}
                {o.delta_fraction !== null && ` (${o.delta_fraction > 0 ? '+' : ''}${percent(o.delta_fraction)})`} from the median
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <AlarmsPanel alarms={alarms} older={0} now={now} own />
    </>
  );
}

function turn(by: number): void {
  const all = jobs.value;
  const i = all.findIndex((j) => j.key === place.value.params['job']);
  const next = all[(i + by + all.length) % all.length];
  if (next) put({ job: next.key, off: null }, 'push');
}

function oddText(job: Job): string {
  const odd = new Set(job.odd.map((o) => o.rank)).size;
  if (odd > 0) return `${count(odd)} of ${count(job.ranks.length)} ${odd === 1 ? 'stands' : 'stand'} out`;
  return job.ranks.length > 2 ? 'none stands out' : '';
}

function RankRow({
  r,
  i,
  job,
  on,
  style,
  onOver,
  onDraw,
}: {
  r: RunStatus;
  i: number;
  job: Job;
  on: boolean;
  style: { colour: string; dash: readonly number[] };
  onOver: (over: boolean) => void;
  onDraw: (on: boolean) => void;
}) {
  const odd = (measure: string) => job.odd.find((o) => o.rank === i && o.measure === measure);
  const name = rankName(r, several(job.ranks));
  const growth = r.growth_bytes_per_step;
  return (
    <tr data-rank={i} class={job.odd.some((o) => o.rank === i) ? 'odd' : ''} onPointerEnter={() => onOver(true)} onPointerLeave={() => onOver(false)}>
      <th scope="row">
        <label class="rank-name">
          {job.ranks.length > 1 && (
            <>
              <input type="checkbox" checked={on} onChange={(e) => onDraw(e.currentTarget.checked)} aria-label={`Draw ${name}`} title="Draw its curve" />
              <Swatch {...style} />
            </>
          )}
          <span>{name}</span>
        </label>
      </th>
      <td title={`pid ${r.pid}`}>
        {r.host}
        {r.gpu !== null && !several(job.ranks) ? ` gpu ${r.gpu}` : ''}
      </td>
      <td class="right num">{r.step === null ? '-' : count(r.step)}</td>
      <td class="right num">{r.step_us === null ? '-' : span(r.step_us)}</td>
      <td class="right">{bytes(r.allocated_bytes)}</td>
      <td class="right">{bytes(r.reserved_bytes)}</td>
      <td class={'right num' + (odd('fragmentation') ? ' odd-cell' : '')}>{r.fragmentation === null ? '-' : percent(r.fragmentation, 0)}</td>
      <td class="right">{bytes(r.headroom_bytes)}</td>
      <td class="right num">{growth === null ? '-' : Math.abs(growth) < 1 ? '0' : delta(Math.round(growth))}</td>
      <Peak odd={odd('peak_allocated')} value={r.peak_allocated_bytes} field="peak_allocated_bytes" />
      <Peak odd={odd('peak_reserved')} value={r.peak_reserved_bytes} field="peak_reserved_bytes" />
      <td class="right num">{r.num_alloc_retries === null ? '-' : count(r.num_alloc_retries)}</td>
      <td class={'right num' + (odd('oom_events') ? ' odd-cell' : '')}>{r.num_ooms === null ? '-' : count(r.num_ooms)}</td>
      <td>
        <Seen over={r.ended} age={r.last_seen_s} />
      </td>
      <td class="fails">{r.alarms.join(', ')}</td>
    </tr>
  );
}

function Peak(p: { odd: Job['odd'][number] | undefined; value: number | null; field: string }) {
  return p.value === null ? <td class="right">-</td> : <Cell {...p} />;
}

function bytes(n: number | null) {
  return n === null ? '-' : <Bytes n={n} />;
}
