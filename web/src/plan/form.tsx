// The question as a form. What can be set, and what is assumed where nothing is,
// comes from the planner's own lists.

import { useId, useRef, useState } from 'preact/hooks';
import { size } from '../format';
import { Copy, Select } from '../parts/basic';
import { filesShown } from '../parts/files';
import { place, put } from '../route';
import { runs } from '../state';
import { Model } from './model';
import { againstOf, kindOf, modeOf, ofKind, set, shownOptions, type Question } from './question';
import { askNow, defaults, edit, ledger, trouble } from './state';
import type { Offer, Option } from '../types/view.gen';

// The options that everybody thinks about, as people call them; the others are
// under More, by the names of their flags.
const usual: Readonly<Record<string, string>> = {
  batch: 'Batch size',
  seq: 'Sequence length',
  'target-seq': 'Target length',
  generate: 'New tokens',
  lora: 'Rank',
  dtype: 'Weights in',
  quant: 'Quantised',
  optimizer: 'Optimizer',
  recompute: 'Recompute',
};

export function Form({ q, o, busy, command, onMax, onShare }: {
  q: Question;
  o: Offer;
  busy: boolean;
  command: string;
  onMax: (of: string) => void;
  onShare: () => void;
}) {
  const kind = kindOf(q, o);
  const shape = o.shapes.find((s) => s.name === q.shape);
  const single = (x: Option) => x.words.length === 1 && x.numbered.length === 0; // leaves no choice
  // A shape says which sizes it has; of somebody's own config nobody knows.
  const unfit = (x: Option) => shape && ['seq', 'target-seq'].includes(x.name) && shape.start[x.name] === undefined && !q.options[x.name];
  const shown = shownOptions(q, o).filter((x) => x.name !== 'mode' && !single(x) && !unfit(x));
  const first = Object.keys(usual).flatMap((name) => shown.filter((x) => x.name === name && (x.name !== 'target-seq' || shape?.start[x.name])));
  const more = shown.filter((x) => !first.includes(x));
  const opened = useRef(false); // it does not close under what is being typed
  opened.current ||= more.some((x) => q.options[x.name]) || q.settings !== '' || q.limit !== '';
  const dry = ledger.value !== null; // it says what is run
  const field = (x: Option, label: string) => (
    <OptionField o={x} label={label} value={q.options[x.name] ?? ''} onText={(v) => edit((now) => set(now, x.name, v), x.name)} />
  );
  return (
    <form
      class="plan-form"
      aria-label="What to plan"
      onSubmit={(e) => {
        e.preventDefault();
        askNow();
      }}
    >
      <div class="plan-fields">
        {!dry && <Model q={q} o={o} />}
        <section>
          <div class="choice plan-kinds" role="group" aria-label="What is planned" hidden={dry}>
            {o.kinds.map((k) => (
              <button
                type="button"
                aria-pressed={k === kind}
                disabled={k.why !== ''}
                title={k.why || undefined}
                data-choice={k.name}
                onClick={() => edit((now) => ofKind(now, k, o))}
              >
                {k.title}
              </button>
            ))}
          </div>
          <div class="options">
            {!dry && first.map((x) => field(x, x.name === 'seq' && modeOf(q) === 'generate' ? 'Prompt length' : usual[x.name]!))}
            <Room q={q} o={o} />
          </div>
        </section>
        <details class="plan-more" open={opened.current}>
          <summary>More</summary>
          <div class="options">
            <Line
              label="limit"
              name="limit"
              value={q.limit}
              placeholder="none"
              usage="A cap on reserved memory, such as 40GiB."
              onText={(limit) => edit((now) => ({ ...now, limit }), 'limit')}
            />
            {!dry && more.map((x) => field(x, x.name))}
            <Line
              label="settings"
              name="settings"
              value={q.settings}
              placeholder="PyTorch's defaults"
              usage="Of the allocator, as for PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True."
              onText={(settings) => edit((now) => ({ ...now, settings }), 'settings')}
            />
          </div>
        </details>
        {!dry && <Beside />}
      </div>
      <div class="plan-asks">
        <button type="button" hidden={dry} disabled={busy} data-ask="max-batch" onClick={() => onMax('batch')} title="The largest batch that fits">
          Largest batch
        </button>
        <button type="button" hidden={dry} disabled={busy} data-ask="max-seq" onClick={() => onMax('seq')} title="The longest sequence that fits">
          Longest sequence
        </button>
        <code class="plan-command" data-field="command" title={command}>
          {command.split(' ').map((word, i) => [i > 0 && ' ', <span>{word}</span>])}
        </code>
        <Copy text={command} label="Copy the command" />
        <button type="button" class="small" hidden={dry} onClick={onShare} title="Share (s)" data-act="share">
          Share as a link
        </button>
      </div>
    </form>
  );
}

// plainUsage is what the help of the command says, without the dashes of flags.
function plainUsage(text: string): string {
  return text.replace(/--(?=[a-z])/g, '').replace(/\n/g, ' ');
}

// wrong reports whether the server says that a field is wrong: its answers begin
// with the field's name.
function wrong(name: string): boolean {
  return new RegExp(`^${name}\\b(?!-)`).test(trouble.value ?? '');
}

// OptionField is an option as what it is: a switch, one of some words, a number,
// or a text. What is not set has its default in view.
function OptionField({ o, label, value, onText }: { o: Option; label: string; value: string; onText: (v: string) => void }) {
  const id = useId();
  const usage = plainUsage(o.usage);
  const usually = defaults.value[o.name];
  if (o.value === '') {
    return (
      <div class="option" title={usage}>
        <label for={id}>{label}</label>
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
      <div class="option" title={usage}>
        <label for={id}>{label}</label>
        <select
          id={id}
          name={o.name}
          value={value}
          class={value === '' ? 'is-default' : undefined}
          aria-describedby={`${id}-usage`}
          aria-invalid={wrong(o.name) ? 'true' : undefined}
          onChange={(e) => onText(e.currentTarget.value)}
        >
          <option value="" selected={value === ''}>
            {usually ?? 'default'}
          </option>
          {[...(value && !o.words.includes(value) ? [value] : []), ...o.words.filter((w) => w !== usually || w === value)].map((w) => (
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
      label={label}
      name={o.name}
      value={value}
      placeholder={usually ?? ''}
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
    <div class="option" title={usage}>
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
        aria-invalid={wrong(name) ? 'true' : undefined}
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

// Usage is read out with its field, and shown under it while that has the focus.
function Usage({ id, text }: { id: string; text: string }) {
  return (
    <span class="usage" id={`${id}-usage`}>
      {text}
    </span>
  );
}

const bySize = 'size';

// Room is a card, or one of some size.
function Room({ q, o }: { q: Question; o: Offer }) {
  const id = useId();
  const [sized, setSized] = useState(false); // its field stays while it is emptied
  const known = o.cards.some((c) => c.name === q.gpu);
  const value = known ? q.gpu : q.gpu !== '' || sized ? bySize : '';
  return (
    <>
      <div class="option" title="What it must fit into">
        <label for={id}>Card</label>
        <select
          id={id}
          name="gpu"
          value={value}
          title={o.cards.find((c) => c.name === value)?.title}
          onChange={(e) => {
            const picked = e.currentTarget.value;
            setSized(picked === bySize);
            edit((now) => ({ ...now, gpu: picked === bySize ? '80GiB' : picked }), 'gpu');
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
          label="Its memory"
          name="gpu-size"
          value={q.gpu}
          placeholder="80GiB"
          usage="What the driver says the card has, such as 80GiB."
          onText={(gpu) => edit((now) => ({ ...now, gpu }), 'gpu')}
        />
      )}
    </>
  );
}

// Beside chooses the recording that the plan is held against.
function Beside() {
  const list = runs.value.filter((r) => r.state === 'ready' && !r.host && r.events > 0);
  const now = againstOf(place.value.params);
  return (
    <section>
      <h2>Compare with a recording</h2>
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
