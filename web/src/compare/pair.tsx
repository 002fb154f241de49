// What changed from A to B: the totals, and the call stacks.

import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { count, percent, plural } from '../format';
import { Bytes, Delta, Empty, Field, noStack, Panel, pattern, Stack } from '../parts/basic';
import { place, put } from '../route';
import type { PairDocument as Pair, Side, Stack as StackChange } from '../types/diff.gen';

export function Totals({ p }: { p: Pair }) {
  const row = (label: string, of: (s: Side) => number | null, field: string) => {
    const a = of(p.a);
    const b = of(p.b);
    if (a === null && b === null) return null;
    return (
      <tr data-total={field}>
        <th scope="row">{label}</th>
        <td class="right">
          <Bytes n={a} field={`a.${field}`} />
        </td>
        <td class="right">
          <Bytes n={b} field={`b.${field}`} />
        </td>
        <td class="right">{a !== null && b !== null ? <Delta n={b - a} /> : <span class="muted">-</span>}</td>
      </tr>
    );
  };
  const other = (label: string, a: ComponentChildren, b: ComponentChildren, change: ComponentChildren = '') => (
    <tr>
      <th scope="row">{label}</th>
      <td class="right num">{a}</td>
      <td class="right num">{b}</td>
      <td class="right num">{change}</td>
    </tr>
  );
  const part = (n: number | null) => (n === null ? '-' : percent(n));
  const fa = p.a.fragmentation.reserved_unallocated_of_peaks;
  const fb = p.b.fragmentation.reserved_unallocated_of_peaks;
  return (
    <table class="grid totals">
      <thead>
        <tr>
          <th scope="col">
            <span class="hidden">What</span>
          </th>
          <th scope="col" class="right">
            A
          </th>
          <th scope="col" class="right">
            B
          </th>
          <th scope="col" class="right">
            B − A
          </th>
        </tr>
      </thead>
      <tbody>
        {other('moment', moment(p.a), moment(p.b))}
        {row('peak reserved', (s) => s.peak_reserved_bytes, 'peak_reserved_bytes')}
        {row('peak allocated', (s) => s.peak_allocated_bytes, 'peak_allocated_bytes')}
        {row('peak requested', (s) => s.peak_requested_bytes, 'peak_requested_bytes')}
        {other('fragmentation', part(fa), part(fb), fa !== null && fb !== null ? `${fb > fa ? '+' : ''}${percent(fb - fa)}` : '')}
        {row('reserved then', (s) => s.reserved_bytes, 'reserved_bytes')}
        {row('allocated then', (s) => s.allocated_bytes, 'allocated_bytes')}
        {row('requested then', (s) => s.requested_bytes, 'requested_bytes')}
        {other('active blocks then', count(p.a.active_blocks), count(p.b.active_blocks), signed(p.b.active_blocks - p.a.active_blocks))}
        {other('failed requests', count(p.a.oom_events), count(p.b.oom_events), signed(p.b.oom_events - p.a.oom_events))}
      </tbody>
    </table>
  );
}

function signed(n: number): string {
  return n > 0 ? `+${count(n)}` : count(n);
}

function moment(s: Side): string {
  const at = s.at;
  const asked = at.asked.replace(/^step:/, 'end of step ');
  if (at.event === null) return asked;
  return `${at.asked === String(at.event) ? '' : `${asked}, `}event ${count(at.event)}`;
}

const kinds = ['grown', 'new', 'shrunk', 'gone'] as const;

// How many stacks are shown before somebody asks for all.
const first = 40;

export function Stacks({ p }: { p: Pair }) {
  const [all, setAll] = useState(false);
  const q = place.value.params['q'] ?? '';
  const { test, wrong } = pattern(q);
  const matches = (s: StackChange) =>
    !test || test.test(s.site ?? noStack) || s.frames?.some((f) => test.test(`${f.filename}:${f.line} ${f.name}`));
  const found = p.stacks.filter(matches);
  const shown = all ? found : found.slice(0, first);
  return (
    <Panel
      title="What changed, by call stack"
      name="stacks"
      aside={
        <span>
          <Delta n={p.delta_bytes} field="delta_bytes" /> in allocated blocks
          {p.sizes !== 'block' && `, by ${p.sizes} sizes`}
        </span>
      }
    >
      <div class="change-kinds">
        {kinds.map((k) => (
          <span class={`change-kind ${k}`} data-kind={k}>
            <strong>{k}</strong> <Delta n={p[k].delta_bytes} field={`${k}.delta_bytes`} />{' '}
            <span class="muted">in {plural(p[k].stacks, 'stack')}</span>
          </span>
        ))}
        <span class="muted">{plural(p.same.stacks, 'stack')} the same</span>
        <span class="grow" />
        <Field label="filter" name="q" placeholder="regular expression" value={q} onText={(v) => put({ q: v })} wrong={wrong} width={20} />
      </div>
      {found.length === 0 ? (
        <Empty>{test ? 'No call stack matches.' : 'Nothing changed.'}</Empty>
      ) : (
        <div class="stack-changes" tabIndex={0} role="region" aria-label="Call stacks that changed">
          <div class="change-row head" aria-hidden="true">
            <span>change</span>
            <span class="right">B − A</span>
            <span class="right">A</span>
            <span class="right">B</span>
            <span class="right">blocks</span>
            <span>allocated at</span>
          </div>
          {shown.map((s) => (
            <One s={s} />
          ))}
          {shown.length < found.length && (
            <button class="link" onClick={() => setAll(true)}>
              Show all {count(found.length)}
            </button>
          )}
        </div>
      )}
    </Panel>
  );
}

function One({ s }: { s: StackChange }) {
  return (
    <details class="stack-change" data-change={s.change} data-delta={s.delta_bytes}>
      <summary class="change-row">
        <span class={`tag ${s.change}`}>{s.change}</span>
        <span class="right">
          <Delta n={s.delta_bytes} />
        </span>
        <span class="right">
          <Bytes n={s.a_bytes} />
        </span>
        <span class="right">
          <Bytes n={s.b_bytes} />
        </span>
        <span class="right num">
          {count(s.a_blocks)} → {count(s.b_blocks)}
        </span>
        <span class="site" data-site title={s.site ?? noStack}>
          {s.site ?? noStack}
        </span>
      </summary>
      <div class="both-stacks">
        {s.matched !== null && s.matched !== 'exact' && <p class="muted">{ways[s.matched]}</p>}
        <Stack frames={s.frames} />
        {s.a_frames && (
          <>
            <h3>In A</h3>
            <Stack frames={s.a_frames} />
          </>
        )}
      </div>
    </details>
  );
}

const ways: Record<string, string> = {
  lines: 'The same stack, at lines that moved or under another path.',
  functions: 'The same functions; the lines differ.',
  site: 'The same place of allocation; what called it differs.',
};
