// The tool bar of the graph of call stacks.

import { useSignal } from '@preact/signals';
import { count, delta, plural, share, size } from '../format';
import { Bytes, Check, Choice, Field } from '../parts/basic';
import { Judged } from '../parts/judged';
import { put, range } from '../route';
import { meta, moment } from '../state';
import type { Stacks } from '../types/view.gen';
import { changesOnly, eventOf, folded, knownModes, mode, moments, search, segments, setView, view, views } from './view';

export function Tools({ answer, busy, onMatch }: { answer: Stacks | null; busy: boolean; onMatch: (by: 1 | -1) => void }) {
  return (
    <div class="tools" role="toolbar" aria-label="Stacks">
      <Choice
        label="What is counted"
        value={segments.value ? 'segments' : 'blocks'}
        options={[
          { value: 'blocks', text: 'blocks' },
          { value: 'segments', text: 'segments' },
        ]}
        onPick={(v) => put({ what: v === 'segments' ? v : null, zoom: null }, 'push')}
      />
      <Choice label="View" value={view.value} options={views} onPick={setView} />
      <Choice label="When" value={mode.value} options={knownModes.value} onPick={(v) => put({ mode: v === 'moment' ? null : v }, 'push')} />
      {mode.value === 'diff' && <Moments />}
      <Check
        label="fold library frames"
        name="fold"
        on={folded.value}
        onPick={(on) => put({ lib: !on, zoom: null }, 'push')}
        title="Show your own frames and the one that allocated the memory (l)"
      />
      <Judged kind="stack" label="search" name="q" value={search.value} onText={(v) => put({ q: v })} width={18} />
      {answer?.found && (
        <span class="found">
          <span class="together">
            <button class="small" disabled={answer.found.frames === 0} onClick={() => onMatch(-1)} title="Previous match (M)" aria-label="Previous match">
              ‹
            </button>
            <button class="small" disabled={answer.found.frames === 0} onClick={() => onMatch(1)} title="Next match (m)" aria-label="Next match">
              ›
            </button>
          </span>
          <span data-field="matched" data-bytes={answer.found.bytes} data-frames={answer.found.frames} data-blocks={answer.found.blocks}>
            {answer.found.frames === 0
              ? 'no frame matches'
              : `${plural(answer.found.frames, 'frame')}, ${plural(answer.found.blocks, 'block')}, ${size(answer.found.bytes)} (${share(answer.found.bytes, answer.total_bytes)})`}
          </span>
        </span>
      )}
      <span class="grow" />
      {answer && (
        <span class="muted" aria-busy={busy}>
          {when()} {mode.value === 'diff' ? delta((answer.b_bytes ?? 0) - (answer.a_bytes ?? 0)) : <Bytes n={answer.total_bytes} field="total_bytes" />}
        </span>
      )}
    </div>
  );
}

function when(): string {
  const at = moment.value ?? -1;
  const r = range.value;
  switch (mode.value) {
    case 'peak':
      return 'at the peak:';
    case 'area':
      return r ? `average from event ${count(r.after + 1)} to ${count(r.until)}:` : 'average over the run:';
    case 'diff':
      return '';
    default:
      return at < 0 ? 'before the first event:' : `after event ${count(at)}:`;
  }
}

// Moments are the two that are compared.
function Moments() {
  const m = meta.value.data!;
  const r = moments.value;
  return (
    <span class="moments">
      <Moment label="from" name="after" at={r ? r.after : null} />
      <Moment label="to" name="until" at={r ? r.until : null} />
      <datalist id="moments">
        <option value="start" />
        <option value="peak" />
        <option value="end" />
        {m.steps.map((s) => (
          <option value={`step ${s.number}`} />
        ))}
      </datalist>
      <Choice
        label="What the width is"
        value={changesOnly.value ? 'change' : 'larger'}
        options={[
          { value: 'change', text: 'what changed' },
          { value: 'larger', text: 'all' },
        ]}
        onPick={(v) => put({ width: v === 'larger' ? v : null }, 'push')}
      />
    </span>
  );
}

function Moment({ label, name, at }: { label: string; name: 'after' | 'until'; at: number | null }) {
  const wrong = useSignal<string | null>(null);
  const other = name === 'after' ? 'until' : 'after';
  const take = (text: string): boolean => {
    const e = eventOf(text);
    wrong.value = e === null ? 'Write start, peak, end, the end of a step such as step 3, or the number of an event.' : null;
    // Both are in the address then, so that a link means the same.
    if (e !== null) put({ [name]: e, [other]: moments.value?.[other] ?? null }, 'push');
    return e !== null;
  };
  return <Field label={label} name={name} value={at === null ? '' : at < 0 ? 'start' : String(at)} onText={take} wrong={wrong.value} width={8} list="moments" />;
}
