// A plan beside a recording of the run: both curves on one axis, the peaks, and
// what was allocated, term by term.

import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { percent, size } from '../format';
import { Bytes, Choice, Count, Panel, Trouble } from '../parts/basic';
import { Lines, Swatch, type Chart } from '../parts/lines';
import { lineStyle } from '../palette';
import { theme } from '../theme';
import { phaseAt } from './step';
import type { Against, Span, TermPair as Term } from '../types/plan.gen';
import { phaseText } from './words';

export function Beside({ a, name, trouble }: { a: Against | null; name: string; trouble: string | null }) {
  if (trouble) {
    return (
      <Panel title={`Compared with ${name}`} name="against">
        <Trouble>
          <span data-field="against-trouble">{trouble}</span>
        </Trouble>
      </Panel>
    );
  }
  if (!a) return null;
  return (
    <>
      <Panel title="Planned and measured" name="against" aside={name}>
        <p data-field="covered" data-covered={a.covered}>
          Of the recorded bytes in allocations of {size(a.least_bytes)} or more, {percent(a.covered, 2)} are planned, in the same order, from{' '}
          {a.from} to {a.to}; {size(a.missing_bytes)} was recorded but not planned, {size(a.extra_bytes)} planned but not recorded.
        </p>
        {a.notes.map((n) => (
          <p class="muted">{n}</p>
        ))}
        <Peaks a={a} />
        <Curves a={a} />
      </Panel>
      <Terms a={a} />
    </>
  );
}

function Peaks({ a }: { a: Against }) {
  return (
    <table class="grid peaks">
      <thead>
        <tr>
          <th scope="col">peak</th>
          <th scope="col" class="right">
            planned
          </th>
          <th scope="col" class="right">
            measured
          </th>
          <th scope="col" class="right">
            off by
          </th>
        </tr>
      </thead>
      <tbody>
        {a.peaks.map((p) => (
          <tr data-peak={p.name}>
            <th scope="row">{p.name}</th>
            <td class="right">
              <Bytes n={p.planned_bytes} field="planned" />
            </td>
            <td class="right">
              <Bytes n={p.measured_bytes} field="measured" />
            </td>
            <td class="right num">{p.measured_bytes === null ? '' : off(p.planned_bytes, p.measured_bytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function off(planned: number, measured: number): string {
  const part = planned / Math.max(1, measured) - 1;
  if (part === 0) return 'exact';
  const text = percent(Math.abs(part), 2);
  return Number.parseFloat(text) === 0 ? 'less than 0.01 %' : `${part > 0 ? '+' : '-'}${text}`;
}

function Curves({ a }: { a: Against }) {
  const { planned_bytes: planned, measured_bytes: measured, phases } = a.curve;
  const chart = useMemo<Chart | null>(() => {
    if (!planned || !measured || planned.length === 0) return null;
    const xs = planned.map((_, i) => i);
    const line = (i: number, name: string, ys: number[]) => ({ ...lineStyle(i, theme.value), name, xs, ys, end: ys.length, group: i });
    return {
      lines: [line(0, 'planned', planned), line(1, 'measured', measured)],
      from: 0,
      to: planned.length,
      rules: [],
      failures: [],
      ticks: (n) => names(phases ?? [], planned.length / n),
      place: (x) => {
        const p = phaseAt(phases ?? [], x);
        return p ? phaseText(p.name, p.step) : '';
      },
      label: `Requested bytes: planned at most ${size(Math.max(...planned))}, measured at most ${size(Math.max(...measured))}.`,
    };
  }, [a, theme.value]);
  if (!chart) return null;
  return (
    <>
      <Lines chart={chart} picked={null} />
      <p class="legend small-text">
        {chart.lines.map((l) => (
          <span class="run-key">
            <Swatch colour={l.colour} dash={l.dash} />
            {l.name}
          </span>
        ))}
        <span class="muted">requested bytes, over the planned events; what was measured lies between the allocations that both have</span>
      </p>
    </>
  );
}

// names are the phases that have room for their name, at their middle.
function names(phases: readonly Span[], room: number) {
  return phases
    .filter((p) => p.end - p.begin > 0.55 * room)
    .map((p) => ({ at: (p.begin + p.end) / 2, text: p.step > 0 ? `${p.name} ${p.step}` : p.name }));
}

const kinds: readonly [Term['change'], string][] = [
  ['missing', 'recorded, not planned'],
  ['extra', 'planned, not recorded'],
  ['matched', 'in both'],
];

// The most terms that are listed: the rest is small.
const most = 40;

function Terms({ a }: { a: Against }) {
  const begin = kinds.find(([k]) => a.terms.some((t) => t.change === k))?.[0] ?? 'matched';
  const kind = useSignal<string | null>(null);
  const chosen = kind.value ?? begin;
  const list = a.terms.filter((t) => t.change === chosen);
  return (
    <Panel
      title="Term by term"
      name="terms"
      aside={
        <Choice
          label="Which terms"
          value={chosen}
          options={kinds.map(([k, text]) => ({ value: k, text: `${text} (${a.terms.filter((t) => t.change === k).length})` }))}
          onPick={(v) => (kind.value = v)}
        />
      }
    >
      {list.length === 0 ? (
        <p class="muted">None.</p>
      ) : (
        <div class="scroll">
          <table class="grid terms">
            <thead>
              <tr>
                <th scope="col" class="right">
                  times
                </th>
                <th scope="col" class="right">
                  bytes in all
                </th>
                <th scope="col" class="right">
                  largest
                </th>
                <th scope="col">what</th>
                <th scope="col">where</th>
              </tr>
            </thead>
            <tbody>
              {list.slice(0, most).map((t) => (
                <tr data-term={t.change}>
                  <td class="right">
                    <Count n={t.count} />
                  </td>
                  <td class="right">
                    <Bytes n={t.bytes} field="bytes" />
                  </td>
                  <td class="right">
                    <Bytes n={t.largest_bytes} />
                  </td>
                  <td>{t.what}</td>
                  <td class="mono where">{t.where}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.length > most && <p class="muted">and {list.length - most} more, each smaller</p>}
    </Panel>
  );
}
