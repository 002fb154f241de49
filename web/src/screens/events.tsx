// Events: all that happened, filtered, and the file of it.

import { List } from '../events/list';
import { EventPanel } from '../events/panel';
import { pool, stream } from '../format';
import { Check, Empty, Field, Select, Wait } from '../parts/basic';
import { BlockPanel } from '../parts/block';
import { Judged } from '../parts/judged';
import { Side } from '../parts/side';
import { place, put, run } from '../route';
import { meta, select } from '../state';
import type { Meta } from '../types/view.gen';

const actions = [
  { value: '', text: 'all' },
  { value: 'alloc', text: 'alloc' },
  { value: 'free', text: 'free' },
  { value: 'free_requested', text: 'free_requested' },
  { value: 'free_completed', text: 'free_completed' },
  { value: 'segment', text: 'segment' },
  { value: 'segment_alloc', text: 'segment_alloc' },
  { value: 'segment_free', text: 'segment_free' },
  { value: 'segment_map', text: 'segment_map' },
  { value: 'segment_unmap', text: 'segment_unmap' },
  { value: 'oom', text: 'oom' },
  { value: 'snapshot', text: 'snapshot' },
];

const filterKeys = ['action', 'stack', 'min_size', 'max_size', 'stream', 'pool', 'addr'];

export function Events() {
  const m = meta.value.data;
  if (!m) return <Wait>Asking what there is</Wait>;
  if (m.events === 0) return <Empty>The file has no events: recording was off. The overview shows what it has.</Empty>;
  const params = place.value.params;
  const filter: Record<string, string> = {};
  for (const k of filterKeys) if (params[k]) filter[k] = params[k]!;
  const folded = params['frees'] !== 'both';
  const key = JSON.stringify([run.value, filter, folded]);
  return (
    <div class="events">
      <Tools m={m} folded={folded} />
      <div class="with-side">
        <List key={key} filter={filter} folded={folded} />
        <Side>
          <EventPanel />
          <BlockPanel hint="An event of a block selects the block too." />
        </Side>
      </div>
    </div>
  );
}

function Tools({ m, folded }: { m: Meta; folded: boolean }) {
  const p = place.value.params;
  const set = (key: string) => (v: string) => put({ [key]: v });
  const on = filterKeys.some((k) => p[k]);
  return (
    <div class="tools" role="toolbar" aria-label="Events">
      <Select label="action" name="action" value={p['action'] ?? ''} options={actions} onPick={set('action')} />
      <Judged kind="stack" label="stack" name="stack" value={p['stack'] ?? ''} onText={set('stack')} width={18} />
      <Judged kind="size" label="from" name="min_size" placeholder="1MiB" value={p['min_size'] ?? ''} onText={set('min_size')} width={6} />
      <Judged kind="size" label="to" name="max_size" placeholder="any size" value={p['max_size'] ?? ''} onText={set('max_size')} width={6} />
      <Judged kind="addr" label="address" name="addr" placeholder="0x7f…" value={p['addr'] ?? ''} onText={set('addr')} width={13} />
      {m.streams.length > 1 && (
        <Select
          label="stream"
          name="stream"
          value={p['stream'] ?? ''}
          options={[{ value: '', text: 'all' }, ...m.streams.map((s) => ({ value: String(s), text: stream(s) }))]}
          onPick={set('stream')}
        />
      )}
      {m.pools.length > 1 && (
        <Select
          label="pool"
          name="pool"
          value={p['pool'] ?? ''}
          options={[{ value: '', text: 'all' }, ...m.pools.map((q) => ({ value: q.join(','), text: pool(q) }))]}
          onPick={set('pool')}
        />
      )}
      {on && <button onClick={() => put(Object.fromEntries(filterKeys.map((k) => [k, null])), 'push')}>Clear</button>}
      <Check
        label="fold frees"
        name="fold"
        on={folded}
        onPick={(on) => put({ frees: on ? null : 'both' }, 'push')}
        title="Show free_requested and free_completed as one row (f)"
      />
      <span class="grow" />
      <Field
        label="go to event"
        name="goto"
        value=""
        width={9}
        onText={(v) => {
          const n = Number(v.replaceAll(',', ''));
          if (v.trim() !== '' && Number.isFinite(n)) select(n);
        }}
      />
    </div>
  );
}
