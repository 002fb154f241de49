// The question: settings, bounds, or a search.

import { size } from '../format';
import { Choice, Select } from '../parts/basic';
import type { Meta } from '../types/view.gen';
import { budgets, goals, presets, sources, strategies, type Search } from './question';
import { askNow, edit, slotOf, tune } from './state';

export function Form({ run, m }: { run: number; m: Meta }) {
  const s = slotOf(run);
  const { sets, limit, memory, skip, seconds, goal } = s.draft.value;
  const searching = s.search.value.going !== null;
  const wrong = s.tries.value.error ?? '';
  const setSets = (list: readonly string[]) => edit(run, { sets: list });
  return (
    <form
      class="whatif-form"
      aria-label="What to try"
      onSubmit={(e) => {
        e.preventDefault();
        askNow(run);
      }}
    >
      <h2>Settings to try</h2>
      <ol class="variants">
        {sets.map((conf, i) => (
          <Variant
            conf={conf}
            i={i}
            refused={s.refused.value.get(conf) ?? null}
            onText={(text) => setSets(s.draft.peek().sets.map((one, k) => (k === i ? text : one)))}
            onDrop={() => setSets(sets.filter((_, k) => k !== i))}
          />
        ))}
      </ol>
      <div class="presets" role="group" aria-label="Add settings">
        {presets.map((p) => (
          <button
            type="button"
            class="small"
            title={`${p.conf || 'the defaults'}: ${p.title}`}
            disabled={sets.includes(p.conf)}
            data-preset={p.conf}
            onClick={() => setSets([...sets, p.conf])}
          >
            + {p.text}
          </button>
        ))}
        <button type="button" class="small" onClick={() => setSets([...sets, 'max_split_size_mb:256'])} title="A line to write into">
          + another
        </button>
      </div>
      <div class="presets" role="group" aria-label="Add other allocators">
        {strategies.map((name) => (
          <button
            type="button"
            class="small"
            title="Another allocator with the same calls"
            disabled={sets.includes(name)}
            data-preset={name}
            onClick={() => setSets([...sets, name])}
          >
            + {name}
          </button>
        ))}
      </div>
      <h2>Under</h2>
      <div class="bounds">
        <Bound
          label="limit"
          name="limit"
          value={limit}
          onText={(v) => edit(run, { limit: v })}
          own={m.limit.bytes}
          source={m.limit.source}
          none="none recorded"
          title="The cap on reserved memory: a size such as 40GiB, or none. Empty: as the recording shows."
          wrong={wrong.startsWith('limit ')}
        />
        <Bound
          label="device"
          name="memory"
          value={memory}
          onText={(v) => edit(run, { memory: v })}
          own={m.available_bytes}
          source={m.available_source}
          none="unlimited"
          title="What the device has for the allocator: a size, or none for an unlimited one. Empty: as the recording shows."
          wrong={wrong.startsWith('device_memory ')}
        />
        <span class="muted">at a failure</span>
        <Choice
          label="At a request that fails"
          value={skip ? 'skip' : 'die'}
          options={[
            { value: 'die', text: 'end' },
            { value: 'skip', text: 'leave out, go on' },
          ]}
          onPick={(v) => edit(run, { skip: v === 'skip' })}
        />
      </div>
      <h2>Or let it search</h2>
      <p class="muted small-text">Tune replays the run and variations of it under hundreds of settings, and recommends one.</p>
      <div class="tune-line">
        <Select
          label="for"
          name="goal"
          value={goal}
          options={Object.entries(goals).map(([value, text]) => ({ value, text }))}
          onPick={(v) => edit(run, { goal: v as Search['goal'] })}
        />
        <Select
          label="at most"
          name="budget"
          value={String(seconds)}
          options={(budgets.includes(seconds) ? budgets : [seconds, ...budgets]).map((b) => ({
            value: String(b),
            text: b < 60 ? `${b} s` : `${b / 60} min`,
          }))}
          onPick={(v) => edit(run, { seconds: Number(v) })}
        />
        <button type="button" disabled={searching} data-ask="tune" onClick={() => tune(run)}>
          Tune
        </button>
      </div>
    </form>
  );
}

// Variant is a line of settings; what is wrong with it is said under it.
function Variant({ conf, i, refused, onText, onDrop }: {
  conf: string;
  i: number;
  refused: string | null;
  onText: (v: string) => void;
  onDrop: () => void;
}) {
  return (
    <li>
      <input
        type="text"
        name={`set-${i}`}
        value={conf}
        placeholder="PyTorch's defaults"
        aria-label={`Settings ${i + 1}, as for PYTORCH_CUDA_ALLOC_CONF`}
        aria-invalid={refused !== null ? 'true' : undefined}
        aria-describedby={refused !== null ? `set-${i}-wrong` : undefined}
        title={conf}
        spellcheck={false}
        autocomplete="off"
        onInput={(e) => onText(e.currentTarget.value)}
      />
      <button type="button" class="plain" aria-label={`Take away ${conf || 'the defaults'}`} title="Take away" onClick={onDrop}>
        ✕
      </button>
      {refused !== null && (
        <p class="variant-wrong" id={`set-${i}-wrong`} role="alert" title={refused} data-field="refused">
          {refused}
        </p>
      )}
    </li>
  );
}

function Bound({
  label,
  name,
  value,
  onText,
  own,
  source,
  none,
  title,
  wrong,
}: {
  label: string;
  name: string;
  value: string;
  onText: (v: string) => void;
  own: number | null;
  source: string;
  none: string;
  title: string;
  wrong: boolean;
}) {
  return (
    <>
      <label class="muted" for={`whatif-${name}`}>
        {label}
      </label>
      <input
        id={`whatif-${name}`}
        type="text"
        name={name}
        value={value}
        title={title}
        placeholder={own === null ? none : `${size(own)}, ${sources[source] ?? source}`}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={wrong ? 'true' : undefined}
        onInput={(e) => onText(e.currentTarget.value)}
      />
    </>
  );
}
