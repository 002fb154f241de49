// The curves of a job's ranks, with its alarms as marks.

import { Lines, Trouble, Wait, get, place, put, repeat, size, useEffect, useMouse, useSignal } from '../shared';
import type { Alarm } from '../types/watch.gen';
import type { Curve, Curves, Job } from '../types/live.gen';
import { clock } from './seen';
import { openSnapshot, rankName, several, state, trouble } from './state';

// numbers are those of a sample that are sizes.
export const numbers = [
  { value: 'reserved', text: 'Reserved memory' },
  { value: 'allocated', text: 'Allocated memory' },
  { value: 'active', text: 'Active memory' },
  { value: 'requested', text: 'Requested memory' },
  { value: 'inactive_split', text: 'Inactive split memory' },
  { value: 'device_free', text: 'Free memory of the device' },
  { value: 'pinned', text: 'Pinned host memory' },
  { value: 'host_rss', text: 'Resident host memory' },
];

const minute = 60e6; // us

export const spans = [
  { value: '10m', text: '10 min', us: 10 * minute },
  { value: '2h', text: '2 h', us: 120 * minute },
  { value: '1d', text: '1 day', us: 24 * 60 * minute },
  { value: '7d', text: '7 days', us: 7 * 24 * 60 * minute },
];

const points = 600;

interface Window {
  from: number;
  to: number;
  still: boolean; // it does not go on with the time
}

function windowAt(now: number): Window {
  const { from, to, span = '2h' } = place.value.params;
  if (from && to && Number(from) < Number(to)) return { from: Number(from) * 1e6, to: Number(to) * 1e6, still: true };
  return { from: now - (spans.find((s) => s.value === span) ?? spans[1]!).us, to: now, still: false };
}

interface Style {
  colour: string;
  dash: readonly number[];
}

export function Chart({
  job,
  name,
  now,
  alarms,
  styles,
  shown,
  hot,
}: {
  job: Job;
  name: string;
  now: number;
  alarms: readonly Alarm[];
  styles: readonly Style[];
  shown: readonly boolean[];
  hot: { value: number | null };
}) {
  useMouse('Live', [
    ['Drag', 'Look closer at a piece of time'],
    ['Click on a mark', "Open the alarm's snapshot"],
  ]);
  const got = useSignal<Curves | null>(null);
  const ground = useSignal<Curves | null>(null);
  const wrong = useSignal<string | null>(null);
  const alone = job.ranks.length === 1 && name === 'reserved';
  const { from, to, span } = place.value.params;
  useEffect(() => {
    // A new point comes as often as they are apart.
    const w = windowAt(now);
    const again = w.still ? 60_000 : Math.min(60_000, Math.max(1000, (w.to - w.from) / points / 1000));
    return repeat(
      async (stop) => {
        const { from, to } = windowAt(state.peek()?.now_us ?? now);
        const ask = (number: string) =>
          get<Curves>('live/curves', { job: job.key, name: number, from_us: Math.max(0, Math.round(from)), to_us: Math.round(to), points }, stop);
        const [a, b] = await Promise.all([ask(name), alone ? ask('active') : null]);
        got.value = a;
        ground.value = b;
      },
      () => again,
      (text) => (wrong.value = text),
    );
  }, [job.key, name, alone, from, to, span]);
  if (wrong.value && !trouble.value) return <Trouble>{wrong.value}</Trouble>;
  if (!got.value) {
    return (
      <div class="curve">
        <Wait>Drawing the curves</Wait>
      </div>
    );
  }
  const w = windowAt(now);
  return (
    <Drawn got={got.value} ground={ground.value} w={w} job={job} now={now} name={name} alarms={alarms} styles={styles} shown={shown} hot={hot} />
  );
}

function Drawn({
  got,
  ground,
  w,
  job,
  now,
  name,
  alarms,
  styles,
  shown,
  hot,
}: {
  got: Curves;
  ground: Curves | null;
  w: Window;
  job: Job;
  now: number;
  name: string;
  alarms: readonly Alarm[];
  styles: readonly Style[];
  shown: readonly boolean[];
  hot: { value: number | null };
}) {
  const marks = alarms.filter((a) => a.raised_us >= w.from && a.raised_us <= w.to);
  const lineOf = (curves: Curves, i: number) => {
    const r = job.ranks[i]!;
    const c = curves.ranks.find((x) => x.session === r.session && x.gpu === r.gpu);
    return c && c.at_ms.length > 0 ? stretch(curves, c, !r.ended && r.last_seen_s < 10 && !w.still ? w.to : null) : null;
  };
  const lines = job.ranks.flatMap((r, i) => {
    const l = shown[i] ? lineOf(got, i) : null;
    return l ? [{ ...l, name: rankName(r, several(job.ranks)), ...styles[i]!, group: i, thin: job.ranks.length > 8 }] : [];
  });
  const ofDevice = name === 'reserved' || name === 'allocated' || name === 'device_free';
  const total = ofDevice ? Math.max(0, ...job.ranks.map((r) => r.device_total_bytes ?? 0)) : 0;
  const limit = ofDevice ? Math.max(0, ...job.ranks.map((r) => r.limit_bytes ?? 0)) : 0;
  const under = ground ? lineOf(ground, 0) : null;
  return (
    <>
      <Lines
        chart={{
          lines,
          ...(under ? { ground: under } : {}),
          from: w.from,
          to: w.to,
          rules: [
            { bytes: total, text: 'device' },
            { bytes: limit, text: 'limit' },
          ].filter((r) => r.bytes > 0),
          failures: marks.map((a) => a.raised_us),
          ticks: (n) => timeTicks(w.from, w.to, n),
          place: (x) => clock(x, now),
          label: `${name} of ${job.label}: ${lines.length} curves, ${marks.length} alarms`,
        }}
        picked={hot.value}
        onHover={(group) => (hot.value = group)}
        onDrag={(a, b) => put({ from: Math.floor(Math.min(a, b) / 1e6), to: Math.ceil(Math.max(a, b) / 1e6) }, 'push')}
        onClick={(x) => {
          const near = nearest(marks, x, (w.to - w.from) / 100);
          if (near?.snapshot) void openSnapshot(near.snapshot);
        }}
      />
      {lines.length === 0 && <p class="muted small-text">Nothing is kept of this time.</p>}
      {under && (
        <p class="legend small-text">
          <span class="key reserved-line">reserved</span>
          <span class="key live">active</span>
          {marks.length > 0 && <span class="key failed">alarm</span>}
          {total > 0 && <span class="muted">the device has {size(total)}</span>}
        </p>
      )}
    </>
  );
}

function nearest(marks: readonly Alarm[], x: number, within: number): Alarm | null {
  let best: Alarm | null = null;
  for (const a of marks) {
    const away = Math.abs(a.raised_us - x);
    if (away <= within && (!best || away < Math.abs(best.raised_us - x))) best = a;
  }
  return best;
}

// stretch is a curve as lines are drawn: the most between two points.
function stretch(curves: Curves, c: Curve, until: number | null): { xs: number[]; ys: readonly number[]; end: number } {
  const xs = c.at_ms.map((ms, i) => curves.from_us + (i === 0 ? ms : c.at_ms[i - 1]!) * 1000);
  return { xs, ys: c.max, end: until ?? curves.from_us + c.at_ms[c.at_ms.length - 1]! * 1000 };
}

const lengths = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]; // s

// timeTicks are round times of day.
function timeTicks(from: number, to: number, n: number): { at: number; text: string }[] {
  const raw = (to - from) / 1e6 / n;
  const step = (lengths.find((l) => l >= raw) ?? lengths[lengths.length - 1]!) * 1e6;
  const shift = new Date(from / 1000).getTimezoneOffset() * minute;
  const out = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to; t += step) {
    const d = new Date(t / 1000);
    const text = d.toLocaleTimeString('en-GB', step < minute ? {} : { hour: '2-digit', minute: '2-digit' });
    out.push({ at: t, text: text === '00:00' ? d.toLocaleDateString('en-CA').slice(5) : text });
  }
  return out;
}
