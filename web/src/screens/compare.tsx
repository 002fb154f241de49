// Compare: the curves of several runs on one axis, what changed from one to
// another, and which is odd.

import { useSignal, type Signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { count, plural, size } from '../format';
import { useKeys } from '../keys';
import { Choice, Empty, Panel, Select, Trouble, Wait, type Option } from '../parts/basic';
import { DropZone } from '../parts/files';
import { Lines, Swatch, type Chart, type Line } from '../parts/lines';
import { RangePanel } from '../parts/range';
import { lineStyle, type LineStyle } from '../palette';
import { number, place, put, range, run, visit, type Range } from '../route';
import { current, load, runs, select, selectRange } from '../state';
import { ink, theme } from '../theme';
import { axisPlace, axisTicks, hasSteps, placed, type Align, type Placed } from '../compare/align';
import { compare, stopAll } from '../compare/answers';
import { Coming } from '../compare/coming';
import { Flame } from '../compare/flame';
import { Stacks, Totals } from '../compare/pair';
import { Divergence, RankTable } from '../compare/ranks';
import type { PairDocument as Pair, RanksDocument as Ranks } from '../types/diff.gen';
import type { Curve, Meta, Run } from '../types/view.gen';
import type { Query } from '../api';

// peers are the runs that can be compared with the one that is chosen: those of
// host memory have another allocator than devices.
function peers(a: Run): Run[] {
  return runs.value.filter((r) => r.state === 'ready' && r.host === a.host);
}

// partner is the run that another is compared with: the chosen one, else the
// first, also if it is still being read. Which file is read first changes nothing.
function partner(a: Run, chosen: number | null): Run {
  const able = runs.value.filter((r) => r.state === 'loading' || (r.state === 'ready' && r.host === a.host));
  return able.find((r) => r.id === chosen) ?? able.find((r) => r.id !== a.id) ?? a;
}

export function Compare() {
  const a = current.value!;
  const b = partner(a, number(place.value.params['b']));
  if (b.state === 'loading') return <Wait>Reading {b.label}, to compare with it</Wait>;
  return <Both a={a} b={b} />;
}

function Both({ a, b }: { a: Run; b: Run }) {
  const all = peers(a);
  const params = place.value.params;
  const others = all.filter((r) => r.id !== a.id);
  const coming = runs.value.filter((r) => r.state === 'loading').length;
  const self = b.id === a.id;
  const single = self && a.events === 0; // there is no second moment
  const at = params['at'] ?? (self ? 'peak' : '');
  const bt = params['bt'] ?? (self ? 'end' : ''); // empty: as A
  const query: Query = { run: [a.id, b.id], ...(at || bt ? { at: [at || own(a), bt || at || own(b)] } : {}) };
  const hot = useSignal<number | null>(null); // the run under the pointer
  const styles = useMemo(() => all.map((r) => styleOf(r, a, b, hot.value)), [all.map((r) => r.id).join(), a.id, b.id, hot.value, theme.value, ink.value]);
  useKeys('Compare', () => [{ keys: ['s'], text: 'Stop what is under way', run: stopAll }]);
  return (
    <div class="compare">
      <Tools a={a} b={b} all={all} at={at} bt={bt} />
      <div class="compare-main" tabIndex={0} role="region" aria-label="Comparison">
        <Curves all={all} a={a} b={b} styles={styles} hot={hot} />
        {others.length === 0 && (
          <Panel title="Only one run" name="only">
            <p>
              {single
                ? 'It has no events, so there is one moment only. To compare it with another run, open that too.'
                : 'Below, two moments of it are compared. To compare it with another run, open that too.'}
            </p>
            <DropZone />
          </Panel>
        )}
        {!single && <PairPart query={query} />}
        {others.length > 0 && (coming > 0 ? <Wait>Reading {plural(coming, 'more file')}</Wait> : <RanksPart all={all} styles={styles} hot={hot} />)}
        {!single && <Flame query={query} />}
      </div>
    </div>
  );
}

// styleOf has A and B in colours of their own; the others are grey until they are
// pointed at.
function styleOf(r: Run, a: Run, b: Run, hot: number | null): LineStyle {
  if (r.id === a.id) return lineStyle(0, theme.value);
  if (r.id === b.id) return lineStyle(1, theme.value);
  return r.id === hot ? lineStyle(2, theme.value) : { colour: ink.value.line, dash: [] };
}

// own is the moment of a run for which none was chosen.
function own(r: Run): string {
  return r.events > 0 ? 'peak' : 'end';
}

// The moments that can be chosen: those of the address, and the ends of steps. A
// step is named as the command names it, so that it is the same one in both runs.
const mostSteps = 200;

function momentsOf(r: Run, chosen: string, unset: string | null): Option[] {
  const m = load<Meta>('meta', { run: r.id }).value.data;
  const list: Option[] = [
    ...(unset === null ? [] : [{ value: '', text: unset }]),
    { value: 'peak', text: 'peak' },
    { value: 'end', text: 'end' },
    ...(m?.steps ?? [])
      .filter((s) => s.complete)
      .slice(0, mostSteps)
      .map((s) => ({ value: `step:${s.number}`, text: `end of step ${s.number}` })),
  ];
  if (list.some((o) => o.value === chosen)) return list;
  return [...list, { value: chosen, text: momentText(chosen) }];
}

function momentText(at: string): string {
  const step = /^step:(\d+)$/.exec(at);
  if (step) return `end of step ${step[1]}`;
  return /^\d+$/.test(at) ? `event ${count(Number(at))}` : at || 'peak (or end)';
}

function Tools({ a, b, all, at, bt }: { a: Run; b: Run; all: readonly Run[]; at: string; bt: string }) {
  const self = a.id === b.id;
  return (
    <div class="tools" role="toolbar" aria-label="Compare">
      <span class="side-name">
        <strong>A</strong> <span data-field="a">{a.label}</span>
      </span>
      <Select label="at" name="at" value={at} options={momentsOf(a, at, self ? null : 'peak (or end)')} onPick={(v) => put({ at: v || null }, 'push')} />
      <Select
        label="B"
        name="b"
        value={String(b.id)}
        options={all.map((r) => ({ value: String(r.id), text: r.id === a.id ? `${r.label} (the same)` : r.label }))}
        onPick={(v) => put({ b: v, at: null, bt: null }, 'push')}
      />
      <Select
        label="at"
        name="bt"
        value={bt}
        options={momentsOf(b, bt, self ? null : `as A: ${momentText(at)}`)}
        onPick={(v) => put({ bt: v || null }, 'push')}
      />
      {!self && (
        <button
          onClick={() => visit(b.id, 'compare', { ...place.value.params, b: a.id, at: bt || at || null, bt: bt ? at || own(a) : null })}
          title="A becomes B, and B becomes A"
        >
          Swap
        </button>
      )}
    </div>
  );
}

function PairPart({ query }: { query: Query }) {
  const got = compare<Pair>('pair', query).value;
  const p = got.data;
  if (!p) return <Coming got={got} what="Comparing" />;
  return (
    <div class="compare-grid">
      <Panel title="A and B" name="totals">
        <Totals p={p} />
        {p.notes.length > 0 && (
          <ul class="rows muted small-text">
            {p.notes.map((n) => (
              <li>{n}</li>
            ))}
          </ul>
        )}
      </Panel>
      <Stacks p={p} />
    </div>
  );
}

function RanksPart({ all, styles, hot }: { all: readonly Run[]; styles: readonly LineStyle[]; hot: Signal<number | null> }) {
  const got = compare<Ranks>('ranks', { run: all.map((r) => r.id) }).value;
  const off = hidden();
  if (!got.data) return <Coming got={got} what="Comparing the calls of all runs" />;
  return (
    <div class="compare-grid ranks-grid">
      <RankTable
        r={got.data}
        runs={all}
        styles={styles}
        off={off}
        hot={hot}
        onOff={(id, hide) => {
          const next = new Set(off);
          if (hide) next.add(id);
          else next.delete(id);
          put({ off: [...next].join(',') || null });
        }}
      />
      <Divergence r={got.data} runs={all} />
    </div>
  );
}

// hidden are the runs whose curves are not drawn.
function hidden(): Set<number> {
  return new Set((place.value.params['off'] ?? '').split(',').filter(Boolean).map(Number));
}

type What = 'both' | 'live' | 'reserved';

// columns of a curve: enough for a wide screen.
const columns = 1200;

function Curves({ all, a, b, styles, hot }: { all: readonly Run[]; a: Run; b: Run; styles: readonly LineStyle[]; hot: Signal<number | null> }) {
  const params = place.value.params;
  const off = hidden();
  const metas = all.map((r) => load<Meta>('meta', { run: r.id }).value);
  const ready = metas.every((m) => m.data);
  const eventful = metas.flatMap((m) => (m.data && m.data.events > 0 ? [m.data] : []));
  const steps = ready && eventful.length > 0 && eventful.every(hasSteps);
  const times = ready && eventful.length > 0 && eventful.every((m) => m.first_time !== null);
  const wanted = params['align'];
  const align: Align = wanted === 'time' && times ? 'time' : wanted === 'event' || !steps ? 'event' : 'step';
  const what = (['both', 'live', 'reserved'] as const).find((w) => w === params['lines']) ?? (all.length > 3 ? 'live' : 'both');
  const curves = all.map((r, i) =>
    metas[i]!.data && metas[i]!.data!.events > 0 && !off.has(r.id)
      ? load<Curve>('curve', { run: r.id, n: columns, x: align === 'time' ? 'time' : 'event' }).value
      : null,
  );
  const complete = curves.every((c) => c === null || c.data || c.error);
  // A range is one of A: a drag takes the columns of its curve.
  const first = all.findIndex((r) => r.id === a.id);
  const own = curves[first]?.data;
  const places = own && metas[first]!.data ? placed(own, metas[first]!.data!, align) : null;
  const above = (r: Run) => (r.id === b.id && b.id !== a.id ? 3 : r.id === a.id ? 2 : r.id === hot.value ? 1 : 0); // B is dashed: A shows through
  const chart = useMemo<Chart | null>(() => {
    if (!ready || !complete) return null;
    const lines = all
      .flatMap((r, i) => {
        const c = curves[i]?.data;
        return c ? linesOf(r, i, c, metas[i]!.data!, align, what, styles[i]!) : [];
      })
      .sort((x, y) => above(all[x.group]!) - above(all[y.group]!));
    const from = lines.reduce((n, l) => Math.min(n, l.xs[0] ?? 0), 0);
    const to = lines.reduce((n, l) => Math.max(n, l.end), from + 1);
    const last = eventful.reduce((n, m) => Math.max(n, m.steps[m.steps.length - 1]?.number ?? 0), 0);
    return {
      lines,
      from,
      to,
      rules: [],
      failures: [],
      ticks: (n) => axisTicks(align, from, to, n),
      place: (x) => axisPlace(align, x, last),
      label: `Memory of ${plural(all.length, 'run')} on one axis: ${metas
        .map((m, i) => `${all[i]!.label} reserves at most ${size(m.data?.max_reserved_bytes ?? 0)}`)
        .join('; ')}.`,
    };
  }, [ready, complete, align, what, all.map((r) => r.id).join(), params['off'], styles]);
  const trouble = [...metas, ...curves].find((x) => x?.error)?.error;
  return (
    <Panel
      title="Memory"
      name="curves"
      aside={
        <span class="legend">
          <span>{what === 'both' ? 'active, and reserved as the fainter line' : what === 'live' ? 'active' : what}</span>
          <Choice
            label="Lines"
            value={what}
            options={[
              { value: 'both', text: 'both' },
              { value: 'live', text: 'active' },
              { value: 'reserved', text: 'reserved' },
            ]}
            onPick={(v) => put({ lines: v })}
          />
          <span>aligned by</span>
          <Choice
            label="Aligned by"
            value={align}
            options={[
              ...(steps ? [{ value: 'step', text: 'step' }] : []),
              { value: 'event', text: 'event' },
              ...(times ? [{ value: 'time', text: 'time' }] : []),
            ]}
            onPick={(v) => put({ align: v })}
          />
        </span>
      }
    >
      {trouble && <Trouble>{trouble}</Trouble>}
      {ready && eventful.length === 0 ? (
        <Empty>None of the runs has events: there is no curve.</Empty>
      ) : chart ? (
        <Lines
          chart={chart}
          picked={null}
          onHover={(group) => (hot.value = group === null ? null : all[group]!.id)}
          {...(places && own
            ? {
                onClick: (x: number) => select(own.event[columnAt(places, x)]!),
                onDrag: (from: number, to: number) => selectRange(rangeOf(places, own, Math.min(from, to), Math.max(from, to))),
                chosen: range.value && { from: placeOf(places, own, range.value.after + 1), to: placeOf(places, own, range.value.until + 1) },
              }
            : {})}
        />
      ) : (
        <div class="curve">
          <Wait>Drawing the curves</Wait>
        </div>
      )}
      <p class="legend run-legend">
        {all.map((r, i) => (
          <span
            class={off.has(r.id) ? 'run-key off' : 'run-key'}
            data-run-key={r.id}
            data-colour={styles[i]!.colour}
            onPointerEnter={() => (hot.value = r.id)}
            onPointerLeave={() => (hot.value = null)}
          >
            <Swatch {...styles[i]!} /> {r.label}
            {r.id === run.value && ' (A)'}
            {r.id === b.id && b.id !== run.value && ' (B)'}
          </span>
        ))}
      </p>
      <RangePanel />
    </Panel>
  );
}

// columnAt is the column of a curve at a place of the axis.
function columnAt(p: Placed, x: number): number {
  const after = p.xs.findIndex((at) => at > x);
  return after < 0 ? p.xs.length - 1 : Math.max(0, after - 1);
}

// rangeOf is the range of events between two places.
function rangeOf(p: Placed, c: Curve, from: number, to: number): Range {
  const first = columnAt(p, from);
  return { after: first > 0 ? c.event[first - 1]! : -1, until: c.event[columnAt(p, to)]! };
}

// placeOf is where the column with an event begins.
function placeOf(p: Placed, c: Curve, event: number): number {
  const i = c.event.findIndex((e) => e >= event);
  return i < 0 ? p.end : p.xs[i]!;
}

function linesOf(r: Run, i: number, c: Curve, m: Meta, align: Align, what: What, style: LineStyle): Line[] {
  const { xs, end } = placed(c, m, align);
  const line = (ys: readonly number[], name: string, thin: boolean): Line => ({
    name: `${r.label}${what === 'both' ? `, ${name}` : ''}`,
    ...style,
    xs,
    ys,
    end,
    group: i,
    thin,
    fails: name === 'active' && m.ooms.length > 0 && m.ooms[m.ooms.length - 1]! >= m.events - 2,
  });
  return [
    ...(what !== 'live' ? [line(c.reserved, 'reserved', what === 'both')] : []),
    ...(what !== 'reserved' ? [line(c.active, 'active', false)] : []),
  ];
}
