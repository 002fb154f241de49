// All jobs in a table.

import { Bytes, Check, Field, Go, Panel, Select, count, delta, percent, place, plural, put, size, useKeys, useMemo } from '../shared';
import type { RunStatus } from '../types/watch.gen';
import type { Job, Sketch, State } from '../types/live.gen';
import { AlarmsPanel } from './alarms';
import { Seen } from './seen';
import { sketches } from './state';

// Sum is a job in one line: the worst of its ranks.
interface Sum {
  job: Job;
  running: number; // ranks
  alarms: number;
  step: readonly [number, number] | null;
  allocated: number | null;
  reserved: number | null;
  total: number | null;
  fragmentation: number | null;
  headroom: number | null;
  growth: number | null;
  seen: number;
}

function most(ranks: readonly RunStatus[], of: (r: RunStatus) => number | null): number | null {
  return ranks.reduce<number | null>((m, r) => (of(r) === null ? m : Math.max(m ?? -Infinity, of(r)!)), null);
}

function sum(job: Job): Sum {
  const on = job.ranks.filter((r) => !r.ended);
  const ranks = on.length > 0 ? on : job.ranks;
  const last = most(ranks, (r) => r.step);
  const first = most(ranks, (r) => (r.step === null ? null : -r.step));
  const headroom = most(ranks, (r) => (r.headroom_bytes === null ? null : -r.headroom_bytes));
  return {
    job,
    running: new Set(on.map((r) => r.session)).size,
    alarms: job.ranks.reduce((n, r) => n + r.alarms.length, 0),
    step: last === null || first === null ? null : [-first, last],
    allocated: most(ranks, (r) => r.allocated_bytes),
    reserved: most(ranks, (r) => r.reserved_bytes),
    total: most(ranks, (r) => r.device_total_bytes),
    fragmentation: most(ranks, (r) => r.fragmentation),
    headroom: headroom === null ? null : -headroom,
    growth: most(ranks, (r) => r.growth_bytes_per_step),
    seen: Math.min(...ranks.map((r) => r.last_seen_s)),
  };
}

const orders: Record<string, { text: string; less: (a: Sum, b: Sum) => number }> = {
  name: { text: 'name', less: () => 0 },
  alarms: { text: 'alarms', less: (a, b) => b.alarms - a.alarms },
  headroom: { text: 'least headroom', less: (a, b) => (a.headroom ?? Infinity) - (b.headroom ?? Infinity) },
  reserved: { text: 'most reserved', less: (a, b) => (b.reserved ?? -1) - (a.reserved ?? -1) },
  growth: { text: 'growth', less: (a, b) => (b.growth ?? -Infinity) - (a.growth ?? -Infinity) },
};

export function JobsScreen({ s }: { s: State }) {
  const { q = '', sort = 'name', running } = place.value.params;
  useKeys('Live', () => [{ keys: ['a'], text: 'Jobs with alarms first, or by name', run: () => put({ sort: place.value.params['sort'] ? null : 'alarms' }) }]);
  const words = q.toLowerCase();
  const shown = s.jobs
    .filter((j) => !words || j.label.toLowerCase().includes(words) || j.ranks.some((r) => r.host.toLowerCase().includes(words)))
    .map(sum)
    .filter((x) => !running || x.running > 0)
    .sort((orders[sort] ?? orders['name']!).less);
  const raised = s.alarms.filter((a) => a.cleared_us === null);
  return (
    <>
      {raised.length > 0 && <AlarmsPanel title="Raised alarms" alarms={raised} older={0} now={s.now_us} />}
      <Panel
        title={shown.length === s.jobs.length ? plural(s.jobs.length, 'job') : `${count(shown.length)} of ${plural(s.jobs.length, 'job')}`}
        name="jobs"
        aside={
          <>
            {s.lost_samples > 0 && <span class="fails">{plural(s.lost_samples, 'sample')} lost · </span>}
            {raised.length > 0 ? <span class="fails">{plural(raised.length, 'alarm')} raised</span> : 'no alarm is raised'}
          </>
        }
      >
        <div class="live-tools">
          <Field label="Find" name="q" value={q} placeholder="run or host" onText={(v) => put({ q: v })} />
          <Select
            label="Order by"
            name="sort"
            value={sort}
            options={Object.entries(orders).map(([value, o]) => ({ value, text: o.text }))}
            onPick={(v) => put({ sort: v === 'name' ? null : v })}
          />
          <Check label="only those that run" name="running" on={running === '1'} onPick={(on) => put({ running: on })} />
        </div>
        <div class="scroll" tabIndex={0} role="region" aria-label="Jobs">
          <table class="grid live-table" data-jobs={shown.length} data-now={s.now_us}>
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col" class="right">
                  Ranks
                </th>
                <th scope="col">Last 2 h</th>
                <th scope="col" class="right">
                  Step
                </th>
                <th scope="col" class="right">
                  Allocated
                </th>
                <th scope="col" class="right">
                  Reserved
                </th>
                <th scope="col" class="right" title="Free bytes in split segments, of the reserved ones">
                  Frag
                </th>
                <th scope="col" class="right" title="What the job can still allocate">
                  Headroom
                </th>
                <th scope="col" class="right" title="By how much allocated memory grows">
                  Per step
                </th>
                <th scope="col">Seen</th>
                <th scope="col">Alarms</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((x) => (
                <Row key={x.job.key} x={x} sketch={sketches.value.get(x.job.key)} />
              ))}
            </tbody>
          </table>
        </div>
        {shown.length === 0 && <p class="empty">No job is like that.</p>}
      </Panel>
      <AlarmsPanel title="All alarms" alarms={s.alarms} older={s.older_alarms} now={s.now_us} />
      {s.notes.length > 0 && (
        <ul class="rows muted small-text" data-panel="notes">
          {s.notes.map((n) => (
            <li>{n}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function Row({ x, sketch }: { x: Sum; sketch: Sketch | undefined }) {
  const { job } = x;
  const sessions = new Set(job.ranks.map((r) => r.session)).size;
  const nvml = job.ranks.some((r) => r.source === 'nvml');
  return (
    <tr data-job={job.key} class={x.alarms > 0 ? 'failed' : x.running === 0 ? 'over' : ''}>
      <th scope="row" class="job-name">
        <Go screen="live" change={{ job: job.key }} title={`${job.label}, ${job.ranks[0]!.host} pid ${job.ranks[0]!.pid}`}>
          {job.label}
        </Go>
        {nvml && (
          <span class="tag" title="The process says nothing of itself: the driver says how much of the device it holds">
            NVML
          </span>
        )}
        {job.odd.length > 0 && (
          <span class="tag odd-tag" title="Ranks that stand out from the others">
            {plural(new Set(job.odd.map((o) => o.rank)).size, 'odd rank')}
          </span>
        )}
      </th>
      <td class="right num">{sessions === 1 && job.ranks[0]!.world <= 1 ? '-' : x.running === sessions ? count(sessions) : `${x.running} of ${sessions}`}</td>
      <td>
        <Small sketch={sketch} top={x.total ?? 0} />
      </td>
      <td class="right num">{x.step ? (x.step[0] === x.step[1] ? count(x.step[1]) : `${count(x.step[0])}–${count(x.step[1])}`) : '-'}</td>
      <td class="right">{bytes(x.allocated)}</td>
      <td class="right">{bytes(x.reserved)}</td>
      <td class="right num">{x.fragmentation === null ? '-' : percent(x.fragmentation, 0)}</td>
      <td class="right">{bytes(x.headroom)}</td>
      <td class="right num">{x.growth === null ? '-' : Math.abs(x.growth) < 1 ? '0' : delta(Math.round(x.growth))}</td>
      <td>
        <Seen over={x.running === 0} age={x.seen} />
      </td>
      <td class="fails">{[...new Set(job.ranks.flatMap((r) => r.alarms))].join(', ')}</td>
    </tr>
  );
}

function bytes(n: number | null) {
  return n === null ? '-' : <Bytes n={n} />;
}

const width = 120;
const height = 22;

// Small is the last two hours: reserved behind allocated. What is not known is a gap.
// It has its place before it is there, so that the table stays as it is.
function Small({ sketch, top }: { sketch: Sketch | undefined; top: number }) {
  const [reserved, allocated, ceiling] = useMemo(() => {
    if (!sketch) return ['', '', null];
    const highest = Math.max(1, ...sketch.reserved_mib, ...sketch.allocated_mib);
    // The device is the top if that leaves something to see.
    const total = top / 2 ** 20;
    const scale = total > highest && highest > total / 2 ? total : highest * 1.1;
    return [steps(pairs(sketch.reserved_mib), scale), steps(pairs(sketch.allocated_mib), scale), highest];
  }, [sketch, top]);
  return (
    <svg
      class="small-curve"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={ceiling === null ? 'The last two hours, on their way' : `At most ${size(ceiling * 2 ** 20)} in two hours`}
    >
      {ceiling !== null && <path class="reserved" d={reserved} />}
      {ceiling !== null && <path class="allocated" d={allocated} />}
    </svg>
  );
}

// pairs puts two pieces of time into one: that is two pixels.
function pairs(values: readonly number[]): number[] {
  return values.filter((_, i) => i % 2 === 0).map((v, i) => Math.max(v, values[2 * i + 1] ?? -1));
}

function steps(values: readonly number[], top: number): string {
  const wide = width / values.length;
  let out = '';
  values.forEach((v, i) => {
    if (v < 0) return;
    const y = (height - (v / top) * height).toFixed(1);
    const before = i > 0 && values[i - 1]! >= 0;
    out += `${before ? 'V' : `M${(i * wide).toFixed(1)} ${height}V`}${y}H${((i + 1) * wide).toFixed(1)}`;
    if (!(values[i + 1]! >= 0)) out += `V${height}`;
  });
  return out;
}
