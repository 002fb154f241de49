// What is done by hand: allocate, free, note a stream, empty the cache, change
// settings and limits.

import { signal, useSignal } from '@preact/signals';
import { size } from '../format';
import { add, answer, restart } from './game';
import { chosen } from './map';
import type { Answer, Block as Held, Moment } from '../types/playground.gen';

export function Hand() {
  const a = answer.value;
  if (!a) return null;
  return (
    <>
      <Allocate m={a.moment} />
      <Chosen m={a.moment} />
      <Settings a={a} />
    </>
  );
}

function Allocate({ m }: { m: Moment }) {
  const bytes = useSignal('4MiB');
  const stream = useSignal('0');
  return (
    <section aria-label="Allocate">
      <h2>By hand</h2>
      <form
        class="hand"
        onSubmit={(e) => {
          e.preventDefault();
          const on = stream.value.trim();
          void add(`alloc ${m.next_name} ${bytes.value.replace(/\s+/g, '')}${on && on !== '0' ? ` stream=${on}` : ''}`);
        }}
      >
        <label class="field">
          <span>size</span>
          <Text name="alloc-size" value={bytes} width={8} />
        </label>
        <label class="field">
          <span>stream</span>
          <Text name="alloc-stream" value={stream} width={2} />
        </label>
        <button class="main" type="submit" data-act="alloc">
          Allocate {m.next_name}
        </button>
      </form>
      <div class="hand">
        <button onClick={() => add('empty')} title="torch.cuda.empty_cache()" data-act="empty">
          empty_cache
        </button>
        <button
          onClick={() => add('complete all')}
          disabled={m.pending_bytes === 0}
          title="All streams finish what they were doing"
          data-act="complete"
        >
          finish the work
        </button>
      </div>
    </section>
  );
}

function Text({ name, value, width, mono }: { name: string; value: { value: string }; width: number; mono?: boolean }) {
  return (
    <input
      type="text"
      name={name}
      class={mono ? 'mono' : undefined}
      value={value.value}
      size={width}
      spellcheck={false}
      autocomplete="off"
      onInput={(e) => (value.value = e.currentTarget.value)}
    />
  );
}

function Chosen({ m }: { m: Moment }) {
  const stream = useSignal('1');
  const live = m.blocks.filter((b) => !b.pending);
  const block = live.find((b) => b.name === chosen.value) ?? null;
  return (
    <section aria-label="A block">
      <div class="hand">
        <label class="field">
          <span>block</span>
          <select name="block" value={block?.name ?? ''} onChange={(e) => (chosen.value = e.currentTarget.value || null)} disabled={live.length === 0}>
            <option value="">{live.length === 0 ? 'none is in use' : 'choose, or click it'}</option>
            {live.map((b) => (
              <option value={b.name} selected={b.name === block?.name}>
                {b.name}, {size(b.size_bytes)}
              </option>
            ))}
          </select>
        </label>
        <button disabled={!block} onClick={() => block && void add(`free ${block.name}`)} data-act="free">
          Free{block ? ' ' + block.name : ''}
        </button>
      </div>
      {block && (
        <>
          <form
            class="hand"
            onSubmit={(e) => {
              e.preventDefault();
              void add(`record ${block.name} ${stream.value.trim()}`);
            }}
          >
            <label class="field">
              <span>used on stream</span>
              <Text name="record-stream" value={stream} width={2} />
            </label>
            <button type="submit" data-act="record">
              record_stream
            </button>
          </form>
          <Facts b={block} />
        </>
      )}
    </section>
  );
}

function Facts({ b }: { b: Held }) {
  return (
    <p class="muted small-text">
      {b.name} is {size(b.size_bytes)} at {b.segment}+{size(b.offset_bytes)} on stream {b.stream}
      {b.requested_bytes < b.size_bytes && `, asked for were ${size(b.requested_bytes)}`}
      {b.uses.length > 0 && `, used on stream ${b.uses.join(', ')} too`}.
    </p>
  );
}

const presets = [
  'expandable_segments:True',
  'max_split_size_mb:20',
  'roundup_power2_divisions:4',
  'garbage_collection_threshold:0.6',
  'large_segment_size_mb:64',
];

// bytes is a size as a line has it: whole units where they are whole.
function bytes(n: number): string {
  for (const [unit, name] of [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ] as const) {
    if (n % unit === 0) return `${n / unit}${name}`;
  }
  return String(n);
}

// Whenever the form was used it shows again what is in force: a setting may have
// had no effect.
const uses = signal(0);

function Settings({ a }: { a: Answer }) {
  const m = a.moment;
  return (
    <Form
      key={`${m.settings} ${m.limit_bytes} ${a.device.total_bytes} ${uses.value}`}
      settings={m.settings}
      limit={m.limit_bytes === null ? '' : bytes(m.limit_bytes)}
      total={bytes(a.device.total_bytes)}
      manual={a.device.line.includes('events=manual')}
    />
  );
}

function Form(now: { settings: string; limit: string; total: string; manual: boolean }) {
  const settings = useSignal(now.settings);
  const limit = useSignal(now.limit);
  const total = useSignal(now.total);
  const clean = (t: string) => t.replace(/\s+/g, '');
  const wanted = clean(limit.value) === 'none' ? '' : clean(limit.value);
  const used = (done: Promise<boolean>) => void done.then((ok) => ok && uses.value++);
  return (
    <section aria-label="Settings">
      <h2>Settings</h2>
      <div class="bounds">
        <label for="pg-conf" class="muted">
          settings
        </label>
        <input
          id="pg-conf"
          type="text"
          name="conf"
          class="mono"
          list="pg-presets"
          value={settings.value}
          placeholder="the defaults"
          spellcheck={false}
          autocomplete="off"
          onInput={(e) => (settings.value = e.currentTarget.value)}
        />
        <datalist id="pg-presets">
          {presets.map((p) => (
            <option value={p} />
          ))}
        </datalist>
        <label for="pg-limit" class="muted">
          limit
        </label>
        <input
          id="pg-limit"
          type="text"
          name="limit"
          value={limit.value}
          placeholder="none"
          spellcheck={false}
          autocomplete="off"
          onInput={(e) => (limit.value = e.currentTarget.value)}
        />
        <label for="pg-total" class="muted">
          device
        </label>
        <input
          id="pg-total"
          type="text"
          name="total"
          value={total.value}
          spellcheck={false}
          autocomplete="off"
          onInput={(e) => (total.value = e.currentTarget.value)}
        />
      </div>
      <div class="hand">
        <button
          title="Adds a step that changes the settings while the program runs"
          disabled={clean(settings.value) === now.settings && wanted === now.limit}
          onClick={() => {
            const more: string[] = [];
            if (clean(settings.value) !== now.settings) more.push(`set ${clean(settings.value)}`.trim());
            if (wanted !== now.limit) more.push(`limit ${wanted || 'none'}`);
            used(add(...more));
          }}
          data-act="set"
        >
          From here on
        </button>
        <button
          title="The same steps with these settings from the beginning"
          onClick={() => {
            const words = ['device', `total=${clean(total.value)}`];
            if (wanted) words.push(`limit=${wanted}`);
            if (clean(settings.value)) words.push(`conf=${clean(settings.value)}`);
            if (now.manual) words.push('events=manual');
            used(restart(words.join(' ')));
          }}
          data-act="restart"
        >
          From the start
        </button>
      </div>
    </section>
  );
}
