// Where one begins: without a file, what there is to do; with several runs, a
// table of them.

import { useEffect } from 'preact/hooks';
import { computed, signal } from '@preact/signals';
import { count, plural } from '../format';
import { Go, Panel } from '../parts/basic';
import { DropZone, FileList, receiveText, without } from '../parts/files';
import { Sheet } from '../parts/sheet';
import { open } from '../route';
import { load, outcome, runs, takeSample, told } from '../state';
import { offline } from '../transport';
import { compare, leave, type Answer } from '../compare/answers';
import { Coming } from '../compare/coming';
import { Cell, OddList, oddText, usedMemory } from '../compare/ranks';
import type { RanksDocument as Ranks } from '../types/diff.gen';
import type { Meta, Run } from '../types/view.gen';
import { Told } from './verdict';

export function Start() {
  return (
    <div class="start">
      <h2>Why did it run out of memory?</h2>
      <FileList />
      <DropZone />
      <MessageForm />
      <ul class="start-ways">
        {!offline && (
          <li>
            <button onClick={takeSample} data-ask="sample">
              Open a sample run
            </button>
            <span class="muted">A training job that keeps the graph of every step: recorded, 11,345 events, dies in step 11.</span>
          </li>
        )}
        <li>
          <Go screen="playground">Playground</Go>
          <span class="muted">PyTorch's allocator step by step, with every rule explained.</span>
        </li>
        <li>
          <Go screen="plan">Plan</Go>
          <span class="muted">What a run will take, from a model's config, before it is made.</span>
        </li>
      </ul>
    </div>
  );
}

function MessageForm() {
  return (
    <form
      class="message-form"
      onSubmit={(e) => {
        e.preventDefault();
        const text = new FormData(e.currentTarget).get('message');
        if (typeof text === 'string' && text.trim()) void receiveText(text);
      }}
    >
      <label>
        Or paste the out-of-memory message, or the log around it
        <textarea name="message" rows={3} spellcheck={false} placeholder="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ..." />
      </label>
      <button>Explain it</button>
    </form>
  );
}

const toldShown = signal(false);
told.subscribe((x) => (toldShown.value = x !== null));

// ToldDialog is what explain says of a message that was dropped or pasted.
export function ToldDialog() {
  const x = told.value;
  return (
    <Sheet title={x?.file ? `Why: ${x.file}` : 'Why'} shown={toldShown}>
      {x && <Told x={x} />}
    </Sheet>
  );
}

const devices = computed(() => runs.value.filter((r) => r.state === 'ready' && !r.host));
const coming = computed(() => runs.value.filter((r) => r.state === 'loading').length);

const quiet: Answer<Ranks> = { data: null, going: null, error: null };

// AllRuns lists the runs, and says which of them stand out as ashlar diff does.
export function AllRuns() {
  useEffect(() => leave, []);
  const asked = coming.value === 0 && devices.value.length > 1;
  const got = asked ? compare<Ranks>('ranks', { run: devices.value.map((r) => r.id) }).value : quiet;
  const r = got.data;
  const ranks = runs.value.some((x) => x.rank !== null);
  const used = usedMemory(r);
  return (
    <div class="overview">
      <Panel title={plural(runs.value.length, 'run')} name="runs" aside={r ? oddText(r) : sums()}>
        <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
          <table class="grid run-table">
            <thead>
              <tr>
                <th scope="col">Run</th>
                {ranks && (
                  <th scope="col" class="right">
                    Rank
                  </th>
                )}
                <th scope="col">Outcome</th>
                <th scope="col" class="right">
                  {used.title}
                </th>
                <th scope="col" class="right">
                  Peak reserved
                </th>
                <th scope="col" class="right" title="Peak reserved minus peak allocated">
                  Fragmentation
                </th>
                <th scope="col" class="right">
                  Events
                </th>
              </tr>
            </thead>
            <tbody>
              {runs.value.map((x) => (
                <Row x={x} ranks={ranks} r={r} at={devices.value.findIndex((d) => d.id === x.id)} />
              ))}
            </tbody>
          </table>
        </div>
        {asked && !r && <Coming got={got} what="Looking for runs that stand out" />}
        {r && <OddList r={r} runs={devices.value} />}
        <p class="links wrap">
          <Go screen="compare">Compare them</Go>
        </p>
      </Panel>
    </div>
  );
}

function sums(): string {
  const failed = runs.value.filter((r) => r.ooms > 0).length;
  return coming.value > 0 ? `reading ${plural(coming.value, 'more file')}` : failed > 0 ? `${count(failed)} with OOM` : '';
}

function Row({ x, ranks, r, at }: { x: Run; ranks: boolean; r: Ranks | null; at: number }) {
  const rank = at >= 0 ? r?.ranks[at] : undefined;
  const m = x.state === 'ready' && !rank ? load<Meta>('meta', { run: x.id }).value.data : undefined;
  const odd = (measure: string) => r?.odd.find((o) => o.rank === at && o.measure === measure);
  const used = usedMemory(r);
  const ready = x.state === 'ready';
  return (
    <tr
      data-run={x.id}
      class={x.ooms > 0 ? 'failed' : ''}
      onClick={(e) => ready && !(e.target instanceof Element && e.target.closest('a')) && open(x.id)}
    >
      <th scope="row">{ready ? <a href={`#/${x.id}/overview`}>{x.label}</a> : x.label}</th>
      {ranks && <td class="right num">{x.rank ?? '-'}</td>}
      <td class={(x.ooms > 0 ? 'fails' : 'muted') + (odd('oom_events') ? ' odd-cell' : '')} data-field="outcome">
        {x.state === 'loading' ? 'reading' : x.state === 'failed' ? `cannot be read: ${without(x.file, x.error ?? '')}` : outcome(x)}
        {x.last_oom !== null && <span class="muted"> at event {count(x.last_oom)}</span>}
      </td>
      <Cell odd={odd(used.measure)} value={ready ? (rank ? used.of(rank) : m?.peak.allocated.bytes) : undefined} field="peak" />
      <Cell odd={odd('peak_reserved')} value={ready ? (rank ? rank.peak_reserved_bytes : m?.peak.reserved.bytes) : undefined} field="peak_reserved_bytes" />
      <Cell odd={odd('fragmentation')} value={rank?.fragmentation_bytes} field="fragmentation_bytes" />
      <td class={'right num' + (odd('events') ? ' odd-cell' : '')}>{ready ? count(x.events) : ''}</td>
    </tr>
  );
}
