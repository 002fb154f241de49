// Which model: one that comes with the page, or a config.json.

import { useId, useRef } from 'preact/hooks';
import { size } from '../format';
import { Copy, Select } from '../parts/basic';
import { say } from '../state';
import { configText, pretty, tooLong, type Question } from './question';
import { openLedger } from './dry';
import { edit } from './state';
import type { Offer } from '../types/view.gen';

const own = 'own';

// openConfig reads a file into the form and reports whether it took it. A file
// that may be something else is taken only if it looks like a config.
export async function openConfig(file: File, o: Offer, unsure = false): Promise<boolean> {
  if (openLedger(file, o)) return true;
  if (file.size > o.max_config_bytes) {
    if (!unsure) say(`${file.name} is larger than ${size(o.max_config_bytes)}: use ashlar plan on the command line.`);
    return false;
  }
  const config = await file.text();
  if (unsure && !/"model_type"\s*:/.test(config)) return false;
  edit((now) => ({ ...now, shape: '', config, name: file.name, head: '' }));
  return true;
}

// pick begins with a shape; sizes that were set stay where they suit it.
function pick(q: Question, name: string, o: Offer): Question {
  if (name === own) return { ...q, shape: '', config: pretty(configText(q, o)), name: '' };
  const shape = o.shapes.find((s) => s.name === name)!;
  const options: Record<string, string> = { ...q.options };
  for (const key of ['batch', 'seq', 'target-seq']) {
    const start = shape.start[key];
    if (start === undefined) delete options[key];
    else options[key] ||= start;
  }
  return { ...q, shape: name, config: '', name: '', options, head: '' };
}

export function Model({ q, o }: { q: Question; o: Offer }) {
  const id = useId();
  const file = useRef<HTMLInputElement>(null);
  const text = q.shape ? pretty(configText(q, o)) : q.config;
  const long = tooLong(q.config, o);
  return (
    <section class="plan-model">
      <h2>Model</h2>
      <div class="plan-pick" title="A well-known model, or the config.json of your own: choose the file, or drop it on the page">
        <Select
          label="model"
          name="shape"
          value={q.shape || own}
          options={[...o.shapes.map((s) => ({ value: s.name, text: s.title })), { value: own, text: q.name || 'your own config' }]}
          onPick={(v) => edit((now) => pick(now, v, o))}
        />
        <label class="button" title={`Choose a config.json${o.ledgers ? ', or the ledger of a dry run (run.dry.gz)' : ''}, or drop it on the page`}>
          config.json
          <input
            ref={file}
            type="file"
            name="config-file"
            accept=".json,application/json,.dry,.gz"
            onChange={(e) => {
              const chosen = e.currentTarget.files?.[0];
              if (chosen) void openConfig(chosen, o);
              e.currentTarget.value = '';
            }}
          />
        </label>
      </div>
      <details open={!q.shape}>
        <summary>{q.shape ? 'Its config' : 'The config'}</summary>
        <label class="hidden" for={id}>
          The model's config.json
        </label>
        <textarea
          id={id}
          name="config"
          class="mono"
          rows={10}
          spellcheck={false}
          placeholder={'Paste a config.json here, or drop the file on the page.'}
          value={text}
          aria-invalid={long ? 'true' : undefined}
          onInput={(e) => {
            const config = e.currentTarget.value;
            edit((now) => ({ ...now, shape: '', config, name: now.shape ? '' : now.name }));
          }}
        />
        <div class="plan-config-tools">
          <Copy text={text} label="Copy the config" />
          <Select
            label="head"
            name="head"
            value={q.head}
            options={[{ value: '', text: 'as it says' }, ...o.heads.map((h) => ({ value: h, text: h }))]}
            onPick={(head) => edit((now) => ({ ...now, head }))}
          />
        </div>
        {long && <p class="pending-text small-text">This is longer than {size(o.max_config_bytes)}: use ashlar plan on the command line.</p>}
      </details>
    </section>
  );
}
