// The question as a form. What can be set comes from the planner's own list.

import { useSignal } from '@preact/signals';
import { useId, useState } from 'preact/hooks';
import { size } from '../format';
import { Choice, Select } from '../parts/basic';
import { filesShown } from '../parts/files';
import { put, place } from '../route';
import { runs } from '../state';
import { Model } from './model';
import { againstOf, modeOf, set, type Question } from './question';
import { draft, edit } from './state';
import type { Offer, Option } from '../types/view.gen';

// Options that have a place of their own in the form.
const placed = ['batch', 'seq', 'mode'];

export function Form({ q, o, busy, onAsk }: { q: Question; o: Offer; busy: boolean; onAsk: (q: Question) => void }) {
  // The meaning has one place of its own: beside the field it would move others
  // away from under the pointer.
  const meant = useSignal('');
  const ask = (max: string) => draft.value && onAsk({ ...draft.value, max });
  const mode = modeOf(q);
  const single = (x: Option) => x.words.length === 1 && x.numbered.length === 0; // leaves no choice
  const rest = o.options.filter((x) => !placed.includes(x.name) && !single(x));
  const option = (name: string) => o.options.find((x) => x.name === name)!;
  const field = (x: Option) => <OptionField o={x} value={q.options[x.name] ?? ''} onText={(v) => edit((now) => set(now, x.name, v))} />;
  return (
    <form
      class="plan-form"
      aria-label="What to plan"
      onSubmit={(e) => {
        e.preventDefault();
        ask('');
      }}
      onFocusIn={(e) => (meant.value = (e.target as Element).closest('.option')?.querySelector('.usage')?.textContent ?? '')}
      onFocusOut={() => (meant.value = '')}
    >
      <div class="plan-fields">
        <Model q={q} o={o} />
        <section>
          <h2>
            Run
            <span class="aside">
              <Choice
                label="What is planned"
                value={mode}
                options={option('mode').words.map((w) => ({ value: w, text: w }))}
                onPick={(v) => edit((now) => ({ ...now, options: withMode(now, v) }))}
              />
            </span>
          </h2>
          <div class="options">
            {field(option('batch'))}
            {field(option('seq'))}
          </div>
        </section>
        <section>
          <h2>Fits into</h2>
          <Room q={q} o={o} />
        </section>
        <section>
          <h2>Options</h2>
          <div class="options">{rest.filter((x) => x.mode === '').map(field)}</div>
          <h3>{mode === 'train' ? 'Training' : 'Generating'}</h3>
          <div class="options">{rest.filter((x) => x.mode === mode).map(field)}</div>
          <h3>The allocator</h3>
          <div class="options">
            <Line
              label="settings"
              name="settings"
              value={q.settings}
              placeholder="PyTorch's defaults"
              usage="As for PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True."
              onText={(settings) => edit((now) => ({ ...now, settings }))}
            />
          </div>
        </section>
        <Beside />
      </div>
      <p class="plan-meaning" aria-hidden="true">
        {meant.value || 'What an option means is said here while it has the focus.'}
      </p>
      <div class="plan-asks">
        <button type="submit" class="main" disabled={busy} data-ask="plan" title="Plan (r)">
          Plan
        </button>
        <button type="button" disabled={busy} data-ask="max-batch" onClick={() => ask('batch')} title="The largest batch that fits">
          Largest batch
        </button>
        <button type="button" disabled={busy} data-ask="max-seq" onClick={() => ask('seq')} title="The longest sequence that fits">
          Longest sequence
        </button>
      </div>
    </form>
  );
}

function withMode(q: Question, mode: string): Readonly<Record<string, string>> {
  const options: Record<string, string> = { ...q.options, mode };
  if (mode === 'train') delete options['generate']; // it would say the opposite
  return options;
}

// plainUsage is what the help of the command says, without the dashes of flags.
function plainUsage(text: string): string {
  return text.replace(/--(?=[a-z])/g, '').replace(/\n/g, ' ');
}

// OptionField is an option as what it is: a switch, one of some words, a number,
// or a text.
function OptionField({ o, value, onText }: { o: Option; value: string; onText: (v: string) => void }) {
  const id = useId();
  const usage = plainUsage(o.usage);
  if (o.value === '') {
    return (
      <div class="option">
        <label for={id}>{o.name}</label>
        <input
          id={id}
          type="checkbox"
          name={o.name}
          checked={value === 'true'}
          aria-describedby={`${id}-usage`}
          onChange={(e) => onText(e.currentTarget.checked ? 'true' : '')}
        />
        <Usage id={id} text={usage} />
      </div>
    );
  }
  if (o.words.length > 0 && o.numbered.length === 0) {
    return (
      <div class="option">
        <label for={id}>{o.name}</label>
        <select id={id} name={o.name} value={value} aria-describedby={`${id}-usage`} onChange={(e) => onText(e.currentTarget.value)}>
          <option value="" selected={value === ''}>
            default
          </option>
          {[...(value && !o.words.includes(value) ? [value] : []), ...o.words].map((w) => (
            <option value={w} selected={w === value}>
              {w}
            </option>
          ))}
        </select>
        <Usage id={id} text={usage} />
      </div>
    );
  }
  return (
    <Line
      label={o.name}
      name={o.name}
      value={value}
      placeholder={o.most > 0 ? '' : 'default'}
      usage={usage}
      onText={onText}
      words={[...o.words, ...o.numbered.map((w) => w + ':')]}
      digits={o.most > 0}
    />
  );
}

function Line({
  label,
  name,
  value,
  placeholder,
  usage,
  onText,
  words = [],
  digits = false,
}: {
  label: string;
  name: string;
  value: string;
  placeholder: string;
  usage: string;
  onText: (v: string) => void;
  words?: readonly string[];
  digits?: boolean;
}) {
  const id = useId();
  return (
    <div class="option">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        name={name}
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        inputMode={digits ? 'numeric' : undefined}
        list={words.length > 0 ? `${id}-words` : undefined}
        aria-describedby={`${id}-usage`}
        onInput={(e) => onText(e.currentTarget.value)}
      />
      {words.length > 0 && (
        <datalist id={`${id}-words`}>
          {words.map((w) => (
            <option value={w} />
          ))}
        </datalist>
      )}
      <Usage id={id} text={usage} />
    </div>
  );
}

// Usage is read out with its field, and shown by the form.
function Usage({ id, text }: { id: string; text: string }) {
  return (
    <span class="usage hidden" id={`${id}-usage`}>
      {text}
    </span>
  );
}

const bySize = 'size';

// Room is a card, or one of some size, and a cap.
function Room({ q, o }: { q: Question; o: Offer }) {
  const id = useId();
  const [sized, setSized] = useState(false); // its field stays while it is emptied
  const known = o.cards.some((c) => c.name === q.gpu);
  const value = known ? q.gpu : q.gpu !== '' || sized ? bySize : '';
  return (
    <div class="options room-options">
      <div class="option">
        <label for={id}>gpu</label>
        <select
          id={id}
          name="gpu"
          value={value}
          onChange={(e) => {
            const picked = e.currentTarget.value;
            setSized(picked === bySize);
            edit((now) => ({ ...now, gpu: picked === bySize ? '80GiB' : picked }));
          }}
        >
          <option value="" selected={value === ''}>
            none
          </option>
          <option value={bySize} selected={value === bySize}>
            any, by its memory
          </option>
          {o.cards.map((c) => (
            <option value={c.name} selected={c.name === value}>
              {c.title.replace(/^NVIDIA (GeForce )?/, '')}, {size(c.total_bytes)}
            </option>
          ))}
        </select>
      </div>
      {value === bySize && (
        <Line
          label="its memory"
          name="gpu-size"
          value={q.gpu}
          placeholder="80GiB"
          usage="What the driver says the card has, such as 80GiB."
          onText={(gpu) => edit((now) => ({ ...now, gpu }))}
        />
      )}
      <Line
        label="limit"
        name="limit"
        value={q.limit}
        placeholder="none"
        usage="A cap on reserved memory, such as 40GiB."
        onText={(limit) => edit((now) => ({ ...now, limit }))}
      />
    </div>
  );
}

// Beside chooses the recording that the plan is held against.
function Beside() {
  const list = runs.value.filter((r) => r.state === 'ready' && !r.host && r.events > 0);
  const now = againstOf(place.value.params);
  return (
    <section>
      <h2>Beside a recording</h2>
      {list.length === 0 ? (
        <p class="muted small-text">
          Open a snapshot of the run (
          <button type="button" class="link" onClick={() => (filesShown.value = true)}>
            Files
          </button>
          ) to see planned and measured memory side by side.
        </p>
      ) : (
        <Select
          label="run"
          name="against"
          value={now === null ? '' : String(now)}
          options={[{ value: '', text: 'none' }, ...list.map((r) => ({ value: String(r.id), text: r.label }))]}
          onPick={(v) => put({ against: v || null }, 'push')}
        />
      )}
    </section>
  );
}
