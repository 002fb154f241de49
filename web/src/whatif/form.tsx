// The question: settings, bounds, or a search.

import { useState } from 'preact/hooks';
import { size } from '../format';
import { Choice, Select } from '../parts/basic';
import type { Meta } from '../types/view.gen';
import { budgets, presets, sources, usual, type Question } from './question';
import { draftOf, keepDraft, type Draft } from './state';

export function Form({
  run,
  about,
  first,
  m,
  busy,
  onAsk,
}: {
  run: number;
  about: string;
  first: Question | null;
  m: Meta;
  busy: boolean;
  onAsk: (q: Question) => void;
}) {
  const [draft, setDraft] = useState<Draft>(
    () =>
      draftOf(run, about) ?? {
        about,
        sets: first && first.tune === null ? first.sets : usual,
        limit: first?.limit ?? '',
        memory: first?.memory ?? '',
        skip: first?.skip ?? false,
        budget: first?.tune ?? 60,
      },
  );
  const put = (change: Partial<Draft>) => {
    const next = { ...draft, ...change };
    keepDraft(run, next);
    setDraft(next);
  };
  const { sets, limit, memory, skip, budget } = draft;
  const setSets = (list: readonly string[]) => put({ sets: list });
  const ask = (tune: number | null) => onAsk({ sets, limit: limit.trim(), memory: memory.trim(), skip, tune });
  const change = (i: number, conf: string) => setSets(sets.map((s, k) => (k === i ? conf : s)));
  return (
    <form
      class="whatif-form"
      aria-label="What to try"
      onSubmit={(e) => {
        e.preventDefault();
        ask(null);
      }}
    >
      <h2>Settings to try</h2>
      <ol class="variants">
        {sets.map((conf, i) => (
          <li>
            <input
              type="text"
              name={`set-${i}`}
              value={conf}
              placeholder="PyTorch's defaults"
              aria-label={`Settings ${i + 1}, as for PYTORCH_CUDA_ALLOC_CONF`}
              title={conf}
              spellcheck={false}
              autocomplete="off"
              onInput={(e) => change(i, e.currentTarget.value)}
            />
            <button
              type="button"
              class="plain"
              aria-label={`Take away ${conf || 'the defaults'}`}
              title="Take away"
              onClick={() => setSets(sets.filter((_, k) => k !== i))}
            >
              ✕
            </button>
          </li>
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
      <h2>Under</h2>
      <div class="bounds">
        <Bound
          label="limit"
          name="limit"
          value={limit}
          onText={(v) => put({ limit: v })}
          own={m.limit.bytes}
          source={m.limit.source}
          none="none recorded"
          title="The cap on reserved memory: a size such as 40GiB, or none. Empty: as the recording shows."
        />
        <Bound
          label="device"
          name="memory"
          value={memory}
          onText={(v) => put({ memory: v })}
          own={m.available_bytes}
          source={m.available_source}
          none="without end"
          title="What the device has for the allocator: a size, or none for without end. Empty: as the recording shows."
        />
        <span class="muted">at a failure</span>
        <Choice
          label="At a request that fails"
          value={skip ? 'skip' : 'die'}
          options={[
            { value: 'die', text: 'end' },
            { value: 'skip', text: 'leave out, go on' },
          ]}
          onPick={(v) => put({ skip: v === 'skip' })}
        />
      </div>
      <button type="submit" class="main" disabled={busy} data-ask="try">
        Try them
      </button>
      <h2>Or let it search</h2>
      <p class="muted small-text">
        Tune replays the run and variations of it under hundreds of settings and names the one that reserves least, or under a limit needs
        least.
      </p>
      <div class="tune-line">
        <Select
          label="at most"
          name="budget"
          value={String(budget)}
          options={(budgets.includes(budget) ? budgets : [budget, ...budgets]).map((b) => ({
            value: String(b),
            text: b < 60 ? `${b} s` : `${b / 60} min`,
          }))}
          onPick={(v) => put({ budget: Number(v) })}
        />
        <button type="button" disabled={busy} data-ask="tune" onClick={() => ask(budget)}>
          Tune
        </button>
      </div>
    </form>
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
}: {
  label: string;
  name: string;
  value: string;
  onText: (v: string) => void;
  own: number | null;
  source: string;
  none: string;
  title: string;
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
        onInput={(e) => onText(e.currentTarget.value)}
      />
    </>
  );
}
