// The plan: does it fit, the totals, what the peak is made of.

import { Bytes, Delta, Panel } from '../parts/basic';
import { count, exact, percent, share, size, sizeUp } from '../format';
import { colourOf } from '../palette';
import { theme } from '../theme';
import { stacking } from './stacking';
import { Square, Step } from './step';
import type { Question } from './question';
import type { Document as Answer, Lever } from '../types/plan.gen';
import type { Offer } from '../types/view.gen';
import { failureText, layersText, outsideText, phaseText, rangeText, reasonText, verdict, type Outcome } from './words';

export function Verdict({ q, a, o, busy, onPull }: { q: Question; a: Answer; o: Offer; busy: boolean; onPull: (l: Lever) => void }) {
  const v = verdict(q, a, o);
  const one = a.fits === false ? a.levers.find((l) => l.fits) : a.levers[0];
  return (
    <section class="panel plan-verdict" data-panel="plan-verdict" tabIndex={-1} aria-live="polite" data-fits={String(a.fits)}>
      <p class={'verdict' + (v.good === null ? '' : v.good ? ' good' : ' bad')}>
        <strong data-field="fits">{v.mark}</strong> <span data-field="verdict">{v.text}</span>
      </p>
      {one && (
        <p class="one-lever">
          {a.fits === false ? 'It fits with' : 'Cheapest to save memory:'}{' '}
          <button class="link" disabled={busy} onClick={() => onPull(one)} data-first-lever={one.flags} title="Plan with it">
            {one.name}
          </button>{' '}
          <code>{one.flags}</code>
          <span class="muted">
            , {size(one.saving_bytes)} less{one.cost && `; ${one.cost}`}
          </span>
        </p>
      )}
      {a.fits === false && !one && <p>Nothing of what was tried makes it fit.</p>}
      {a.first_failure && <p data-field="failure">{failureText(a.first_failure)}</p>}
      {a.fits && a.available_bytes !== null && a.peak_reserved_bytes > a.available_bytes && (
        <p>With more room it would reserve {size(a.peak_reserved_bytes)}; here the allocator gives back what it has cached, and the run passes.</p>
      )}
      {a.max && <Largest a={a} />}
      <FitBar q={q} a={a} o={o} />
      <p class="muted small-text">
        <span data-field="model">{a.model}</span>, {count(a.parameters)} parameters, as in preset {a.preset}
        {!a.measured && '; runs of this kind were not measured against plans'}; <code data-field="options">{a.options}</code>
      </p>
    </section>
  );
}

function Largest({ a }: { a: Answer }) {
  const m = a.max!;
  return (
    <p data-field="largest" data-value={m.value}>
      {m.value > 0 ? (
        <>
          The largest that fits: <strong>{`${m.of} ${m.value}`}</strong>, with a peak of {size(m.peak_reserved_bytes)} reserved. {`${m.of} ${m.next}`}{' '}
          does not: {m.why.replace(/--(?=[a-z])/g, '')}
          {m.next_peak_reserved_bytes > 0 && `; without a limit it would reserve ${size(m.next_peak_reserved_bytes)}`}.
        </>
      ) : (
        <>
          Not even <strong>{`${m.of} ${m.next}`}</strong> fits: {m.why.replace(/--(?=[a-z])/g, '')}.
        </>
      )}{' '}
      <span class="muted">{count(m.plans)} were planned.</span>
    </p>
  );
}

// FitBar is what the process takes beside what there is.
export function FitBar({ q, a, o }: { q: Question; a: Outcome; o: Offer }) {
  const outside = a.context_bytes + a.collectives_bytes;
  const room = a.available_bytes === null ? null : a.available_bytes + outside;
  const card = o.cards.find((c) => c.name === q.gpu)?.total_bytes ?? room;
  const most = Math.max(card ?? 0, a.range.device_high_bytes) * 1.02;
  const x = (n: number) => (1000 * n) / most;
  const free = a.peak_reserved_bytes - a.peak_allocated_bytes;
  const parts: [string, number, number][] = [
    ['outside', 0, outside],
    ['allocated', outside, a.peak_allocated_bytes],
    ['cached', outside + a.peak_allocated_bytes, free],
  ];
  return (
    <div class="fit-bar">
      <svg viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label={barText(a, room)}>
        {room !== null && <rect class="room" x="0" y="3" width={x(room)} height="20" />}
        {parts.map(([name, from, n]) => (
          <rect class={name} x={x(from)} y="6" width={x(n)} height="14" />
        ))}
        <line class="range" x1={x(a.range.device_low_bytes)} x2={x(a.range.device_high_bytes)} y1="13" y2="13" />
        {room !== null && <line class="end" x1={x(room)} x2={x(room)} y1="0" y2="26" />}
      </svg>
      <p class="legend small-text">
        <span class="key outside">outside the allocator {size(outside)}</span>
        <span class="key allocated-part">allocated {size(a.peak_allocated_bytes)}</span>
        <span class="key cached-part">reserved, not allocated {size(free)}</span>
        <span class="key range-line">range</span>
        {room !== null && <span class="key room-end">available {size(room)}</span>}
      </p>
    </div>
  );
}

function barText(a: Outcome, room: number | null): string {
  return `The process takes ${size(a.peak_device_bytes)}${room === null ? '' : ` of ${size(room)}`}.`;
}

// Totals has the three totals with their ranges, each beside the plan before.
export function Totals({ a, before }: { a: Outcome; before: Outcome | null }) {
  const r = a.range;
  return (
    <div class="strip plan-strip" data-panel="plan-totals">
      <Total label="Allocated" field="peak_allocated_bytes" a={a} before={before} low={r.low_bytes} high={r.high_bytes} />
      <Total label="Reserved" field="peak_reserved_bytes" a={a} before={before} low={r.reserved_low_bytes} high={r.reserved_high_bytes} />
      <Total
        label="Device"
        field="peak_device_bytes"
        a={a}
        before={before}
        low={r.device_low_bytes}
        high={r.device_high_bytes}
        title={outsideText(a)}
      />
      <div class="item">
        <div class="label">Needs at least</div>
        <div class="value num" data-field="smallest_limit_bytes" data-bytes={a.smallest_limit_bytes} title={exact(a.smallest_limit_bytes)}>
          {sizeUp(a.smallest_limit_bytes)}
        </div>
        <div class="sub">its smallest limit</div>
        <Change a={a.smallest_limit_bytes} b={before?.smallest_limit_bytes} />
      </div>
      <div class={'item' + (a.fits === false ? ' bad' : '')}>
        <div class="label">{a.headroom_bytes !== null && a.headroom_bytes < 0 ? 'Missing' : 'To spare'}</div>
        <div class="value">
          {a.headroom_bytes === null ? <span class="muted">-</span> : <Bytes n={Math.abs(a.headroom_bytes)} field="headroom" />}
        </div>
        <div class="sub">{a.available_bytes === null ? 'nothing to fit into' : `of ${size(a.available_bytes)}`}</div>
      </div>
      <div class="item">
        <div class="label">Peak in</div>
        <div class="value" data-field="binding_phase">
          {a.binding_phase}
        </div>
        <div class="sub">{phaseText(a.binding_phase, a.binding_step)}</div>
      </div>
    </div>
  );
}

type Peak = 'peak_allocated_bytes' | 'peak_reserved_bytes' | 'peak_device_bytes';

function Total({
  label,
  field,
  a,
  before,
  low,
  high,
  title,
}: {
  label: string;
  field: Peak;
  a: Outcome;
  before: Outcome | null;
  low: number;
  high: number;
  title?: string;
}) {
  return (
    <div class="item" title={title}>
      <div class="label">{label}, peak</div>
      <div class="value">
        <Bytes n={a[field]} field={field} />
      </div>
      <div class="sub">{rangeText(low, high)}</div>
      <Change a={a[field]} b={before?.[field]} field={`change.${field}`} />
    </div>
  );
}

function Change({ a, b, field }: { a: number; b: number | undefined; field?: string }) {
  if (b === undefined) return null;
  return (
    <div class="sub change">
      {a === b ? <span class="muted">as before</span> : <Delta n={a - b} {...(field ? { field } : {})} />}
    </div>
  );
}

// Made is what the peak is made of, and its change.
export function Made({ a, before }: { a: Outcome; before: Outcome | null }) {
  const most = Math.max(1, ...a.components.map((c) => c.bytes));
  const gone = (before?.components ?? []).filter((b) => !a.components.some((c) => c.name === b.name));
  const rows = [...a.components, ...gone.map((g) => ({ name: g.name, bytes: 0 }))];
  const old = new Map(before?.components.map((c) => [c.name, c.bytes]));
  return (
    <Panel title="What the peak is made of" name="components" aside={`allocated memory in ${phaseText(a.binding_phase, a.binding_step)}`}>
      <table class="grid made">
        <thead>
          <tr>
            <th scope="col">purpose</th>
            <th scope="col" class="right">
              bytes
            </th>
            <th scope="col" class="right">
              share
            </th>
            <th scope="col" class="made-bar">
              <span class="hidden">bar</span>
            </th>
            {before && (
              <th scope="col" class="right">
                change
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((c) => (
            <tr data-component={c.name}>
              <th scope="row">
                <span class="made-name">
                  <Square name={c.name} />
                  {c.name}
                </span>
              </th>
              <td class="right">
                <Bytes n={c.bytes} field="bytes" />
              </td>
              <td class="right num">{share(c.bytes, a.peak_allocated_bytes)}</td>
              <td class="made-bar">
                <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect width={(1000 * c.bytes) / most} height="10" fill={colourOf(c.name, theme.value)} />
                </svg>
              </td>
              {before && <td class="right">{c.bytes === (old.get(c.name) ?? 0) ? <span class="muted">-</span> : <Delta n={c.bytes - (old.get(c.name) ?? 0)} />}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

export function StepPanel({ a }: { a: Outcome }) {
  const t = a.timeline;
  if (!t || t.allocated_bytes.length === 0) return null;
  const generates = t.phases.some((p) => p.name === 'decode' || p.name === 'prefill');
  const whole = t.phases.some((p) => p.step !== a.binding_step); // of a script
  return (
    <Panel
      title={generates ? 'Memory while it generates' : whole ? 'Memory over the run' : 'Memory in a training step'}
      name="plan-step"
      aside={<span title="Columns have equally many allocations and frees.">{generates || whole ? '● the peak' : `step ${a.binding_step}; ● the peak`}</span>}
    >
      <Step a={a} t={t} />
      <p class="legend plan-legend">
        <span class="key reserved">reserved</span>
        {stacking(t.components)
          .filter((c) => Math.max(...c.bytes) > a.peak_allocated_bytes / 300) // others cannot be seen
          .map((c) => (
            <span class="key swatch" data-key={c.name}>
              <Square name={c.name} />
              {c.name}
            </span>
          ))}
      </p>
    </Panel>
  );
}

// Trust is why the totals have ranges, what was assumed and what is left out.
export function Trust({ a }: { a: Outcome }) {
  const reasons = a.range.reasons.map(reasonText).filter(Boolean);
  return (
    <Panel title="How far to trust it" name="plan-trust">
      <h3>Why there are ranges</h3>
      <ul class="rows" data-field="reasons">
        {reasons.map((r) => (
          <li>{r}</li>
        ))}
        {reasons.length === 0 && <li class="muted">Nothing is known that would make a difference.</li>}
      </ul>
      <h3>Assumed</h3>
      <ul class="rows" data-field="assumed">
        {a.assumed.map((x) => (
          <li>{x}</li>
        ))}
        {a.assumed.length === 0 && <li class="muted">Nothing: the config and the options say all.</li>}
      </ul>
      <h3>Not modelled</h3>
      <ul class="rows" data-field="not_modelled">
        {a.not_modelled.map((x) => (
          <li>{x}</li>
        ))}
        {a.not_modelled.length === 0 && <li class="muted">Nothing that is known to matter.</li>}
      </ul>
    </Panel>
  );
}

export function Recomputed({ a }: { a: Answer }) {
  const r = a.recompute;
  if (!r) return null;
  const rows = [r.best, ...r.others.filter((x) => x.flags !== r.best.flags)];
  return (
    <Panel title="Which layers to recompute" name="recompute" aside={`${count(r.plans)} were planned`}>
      <p>
        {!r.best.fits
          ? `No choice of layers fits. The one that takes least recomputes ${layersText(r.best.layers)}`
          : r.best.layers.length === 0
            ? 'It fits without recomputing anything'
            : `The least to recompute: ${layersText(r.best.layers)}`}
        : <code>{r.best.flags}</code>
      </p>
      <div class="scroll">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">choice</th>
              <th scope="col" class="right">
                layers
              </th>
              <th scope="col" class="right">
                compute
              </th>
              <th scope="col" class="right">
                allocated
              </th>
              <th scope="col" class="right">
                reserved
              </th>
              <th scope="col">fits</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((x) => (
              <tr>
                <th scope="row">{x.name}</th>
                <td class="right num">{x.layers.length}</td>
                <td class="right num">{x.name === 'selective' ? 'no matrix product' : `+${percent(x.extra_compute)}`}</td>
                <td class="right">
                  <Bytes n={x.peak_allocated_bytes} />
                </td>
                <td class="right">
                  <Bytes n={x.peak_reserved_bytes} />
                </td>
                <td class={x.fits ? 'passes' : 'fails'}>{x.fits ? 'yes' : 'no'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
