// Overview, in the order in which one asks: why it died, what to try, who holds the
// memory, the curve, the numbers; then the rest.

import type { ComponentChildren, VNode } from 'preact';
import { explain } from '../explained';
import { count, percent, plural, pool, seconds, size, span, stream } from '../format';
import { At, Bytes, Count, Empty, Go, Panel, Trouble, Wait } from '../parts/basic';
import { CurvePanel, fixShown, wholeCurve } from '../parts/curve';
import { meaning, type Term } from '../parts/word';
import { current, meta, stats } from '../state';
import type { Document as Stats, Level } from '../types/stats.gen';
import type { Document as Explain } from '../types/explain.gen';
import { Findings, Held, Holders, Notes, Pinners } from './holders';
import { AfterUpgrade, Fixes, Numbers as Sum, Verdict } from './verdict';

export function Overview() {
  const got = stats.value;
  const m = meta.value.data;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  const s = got.data?.snapshot;
  const cut = s?.truncated ? s.missing.find((m) => m.what === 'truncated') : undefined;
  return (
    <div class="overview">
      {cut && (
        <p class="warning" role="note" data-warning="truncated">
          Not in the file: {cut.text}.
        </p>
      )}
      <Verdict />
      <Held />
      <Panel title="Memory" name="memory" aside={<Legend />}>
        {m && m.events === 0 ? (
          <Empty>The file has no events: recording was off. It tells only what was there when it was written.</Empty>
        ) : (
          <CurvePanel />
        )}
      </Panel>
      <div class="strip" role="list" aria-label="Key numbers">
        {s ? <Numbers s={s} /> : <Wait>Adding up</Wait>}
      </div>
      {s && <Rest s={s} x={explain.value.data} />}
    </div>
  );
}

// A Piece is a panel and about how many lines it has.
type Piece = readonly [lines: number, panel: VNode];

// Rest has the other panels in two columns of about the same length.
function Rest({ s, x }: { s: Snapshot; x: Explain | undefined }) {
  const pieces: (Piece | false | null | undefined)[] = [
    x && (x.failure || x.health) && [x.failure ? 12 : 7, <Sum x={x} />],
    x && x.fixes.length > 1 && [3.5 * x.fixes.length, <Fixes x={x} />],
    x && x.after_upgrade.length > 0 && [2 + 3 * x.after_upgrade.length, <AfterUpgrade x={x} />],
    x && x.holders.length > 0 && [4 + Math.min(5, x.lines.length) + Math.min(11, x.holders.length), <Holders x={x} />],
    x && x.pinners.length > 0 && [4 + 3 * Math.min(8, x.pinners.length), <Pinners x={x} />],
    x && x.findings.length > 0 && [2 + 5 * x.findings.length, <Findings x={x} />],
    s.segments.length > 0 && [3 + Math.min(20, s.segments.length), <SegmentGroups s={s} />],
    [3 + 2 * s.settings.non_default.length, <Settings s={s} />],
    [3 + 2 * s.missing.length, <Missing s={s} />],
    x?.notes?.length ? [2 + 2 * x.notes.length, <Notes notes={x.notes} />] : undefined,
    [10, <FilePanel s={s} />],
  ];
  const columns: { lines: number; panels: VNode[] }[] = [
    { lines: 0, panels: [] },
    { lines: 0, panels: [] },
  ];
  for (const p of pieces) {
    if (!p) continue;
    const c = columns[0]!.lines <= columns[1]!.lines ? columns[0]! : columns[1]!;
    c.lines += p[0];
    c.panels.push(p[1]);
  }
  return (
    <div class="overview-grid">
      {columns.map((c) => (
        <div class="column">{c.panels}</div>
      ))}
    </div>
  );
}

type Snapshot = NonNullable<Stats['snapshot']>;

function Legend() {
  const pending = wholeCurve().value.data?.pending_end.some((n) => n > 0);
  return (
    <span class="legend">
      <span class="key reserved" title={meaning('reserved')}>
        reserved
      </span>
      <span class="key live" title={meaning('active')}>
        active
      </span>
      {pending && <span class="key pending">pending</span>}
      {fixShown.value !== null && <span class="key after">with the fix: active, and reserved in dashes</span>}
      <Go screen="timeline">open the timeline</Go>
    </span>
  );
}

function Numbers({ s }: { s: Snapshot }) {
  const { memory: mem, fragmentation: f } = s;
  return (
    <>
      <Peak name="reserved" label="Reserved" level={mem.reserved} />
      {mem.allocated.peak_bytes !== null ? (
        <Peak name="allocated" label="Allocated" level={mem.allocated} />
      ) : (
        <Peak name="requested" label="Requested" level={mem.requested} />
      )}
      <Item
        label="Allocated at the end"
        title={meaning('allocated')}
        sub={
          <>
            of <Bytes n={mem.reserved.now_bytes} field="memory.reserved.now_bytes" /> reserved
          </>
        }
      >
        <Bytes n={mem.allocated.now_bytes} field="memory.allocated.now_bytes" />
      </Item>
      <Item
        label="Free at the end"
        title={meaning('free')}
        sub={
          <>
            largest piece <Bytes n={mem.largest_free_bytes} field="memory.largest_free_bytes" />
          </>
        }
      >
        <Bytes n={mem.free_bytes} field="memory.free_bytes" />
      </Item>
      <Item
        label="Fragmentation"
        sub={f.reserved_unallocated === null ? '' : `${percent(f.reserved_unallocated)} at the end`}
        title="1 - peak allocated / peak reserved; at the end: (reserved - allocated) / reserved"
      >
        {f.reserved_unallocated_of_peaks === null ? (
          <span class="muted">not known</span>
        ) : (
          <span class="num">{percent(f.reserved_unallocated_of_peaks)}</span>
        )}
      </Item>
      <Item label="Lost to rounding" sub="at the end" title="(allocated - requested) / allocated">
        {f.internal === null ? <span class="muted">not known</span> : <span class="num">{percent(f.internal)}</span>}
      </Item>
      <Item
        label="OOM"
        title={meaning('OOM')}
        sub={
          s.oom_events.length > 0 ? (
            <>
              event <At event={s.oom_events[s.oom_events.length - 1]!.event} />
            </>
          ) : (
            'no request failed'
          )
        }
        bad={s.oom_events.length > 0}
      >
        <Count n={s.oom_events.length} field="oom_events" />
      </Item>
      <Item
        label="Events"
        sub={[s.span_us !== null ? span(s.span_us) : '', s.steps ? plural(s.steps.complete, 'step') : ''].filter(Boolean).join(', ')}
      >
        <Count n={s.events} field="events" />
      </Item>
    </>
  );
}

function Peak({ name, label, level }: { name: Term; label: string; level: Level }) {
  const at = level.peak_at;
  return (
    <Item
      label={`${label}, ${level.peak_at_least ? 'at least' : 'peak'}`}
      title={level.peak_at_least ? 'The file ends within its events: it may have been more.' : meaning(name)}
      sub={
        level.peak_bytes === null ? (
          ''
        ) : at === null ? (
          'when the file was written'
        ) : at.event === null ? (
          'before the first event'
        ) : (
          <>
            event <At event={at.event} />
            {at.since_start_us !== null && `, ${seconds(at.since_start_us)}`}
          </>
        )
      }
    >
      <Bytes n={level.peak_bytes} field={`memory.${name}.peak_bytes`} />
    </Item>
  );
}

function Item({
  label,
  sub,
  children,
  bad,
  title,
}: {
  label: string;
  sub: ComponentChildren;
  children: ComponentChildren;
  bad?: boolean;
  title?: string;
}) {
  return (
    <div class={'item' + (bad ? ' bad' : '')} role="listitem" title={title}>
      <div class="label">{label}</div>
      <div class="value">{children}</div>
      <div class="sub">{sub}</div>
    </div>
  );
}

function Settings({ s }: { s: Snapshot }) {
  const { known, conf, non_default: list } = s.settings;
  return (
    <Panel title="Settings" name="settings">
      {!known && <p class="muted">The file does not contain the allocator's settings.</p>}
      {known && list.length === 0 && <p>PyTorch's defaults.</p>}
      {conf && (
        <p>
          <code>PYTORCH_CUDA_ALLOC_CONF={conf}</code>
        </p>
      )}
      {list.length > 0 && (
        <dl class="facts">
          {list.map((l) => (
            <>
              <dt class="mono">{l.key}</dt>
              <dd title={l.meaning}>
                <span class="mono">{l.value}</span> <span class="muted">{l.meaning}</span>
              </dd>
            </>
          ))}
        </dl>
      )}
    </Panel>
  );
}

function Missing({ s }: { s: Snapshot }) {
  const r = s.replay;
  return (
    <Panel title="What the file does not contain" name="missing">
      {s.missing.length === 0 && !current.value?.warnings.length && <p>Nothing is missing.</p>}
      <ul class="rows">
        {s.missing.map((m) => (
          <li data-missing={m.what}>{m.text}</li>
        ))}
        {current.value?.warnings.map((w) => (
          <li>{w}</li>
        ))}
        {r && (
          <li class="muted">
            {r.identical
              ? `Replayed: all ${count(r.events)} events identical, so block sizes ${s.truncated ? 'are exact; peaks are bounds, as events are missing' : 'and peaks are exact'}.`
              : `Replayed: ${count(r.identical_events)} of ${count(r.events)} events identical; sizes are those requested.`}
          </li>
        )}
      </ul>
    </Panel>
  );
}

function SegmentGroups({ s }: { s: Snapshot }) {
  if (s.segments.length === 0) return null;
  return (
    <Panel
      title="Segments at the end"
      name="segment-groups"
      aside={
        <Go screen="segments" change={{ event: Math.max(-1, s.events - 1) }}>
          open the map
        </Go>
      }
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="Segments at the end">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Pool</th>
              <th scope="col">Stream</th>
              <th scope="col" class="right">
                Segments
              </th>
              <th scope="col" class="right">
                Reserved
              </th>
              <th scope="col" class="right">
                Allocated
              </th>
              <th scope="col" class="right">
                Free
              </th>
              <th scope="col" class="right">
                Largest free
              </th>
            </tr>
          </thead>
          <tbody>
            {s.segments.slice(0, 20).map((g) => (
              <tr>
                <td>
                  {g.type}
                  {g.expandable && ', expandable'}
                </td>
                <td>{pool(g.pool)}</td>
                <td class="mono">{stream(g.stream)}</td>
                <td class="right num">{count(g.segments)}</td>
                <td class="right">
                  <Bytes n={g.reserved_bytes} />
                </td>
                <td class="right">
                  <Bytes n={g.allocated_bytes} />
                </td>
                <td class="right">
                  <Bytes n={g.free_bytes} />
                </td>
                <td class="right">
                  <Bytes n={g.largest_free_bytes} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function FilePanel({ s }: { s: Snapshot }) {
  const actions = Object.entries(s.actions);
  return (
    <Panel title="File" name="file">
      <dl class="facts">
        <dt>Written by</dt>
        <dd>
          {s.writer ?? 'not known'}; {s.format}
          {s.compression && `, ${s.compression}`}
          {s.file_bytes !== null && `, ${size(s.file_bytes)}`}
        </dd>
        <dt>Device</dt>
        <dd>{s.host ? 'page-locked host memory' : s.device}</dd>
        {s.truncated && (
          <>
            <dt>Broken off</dt>
            <dd>
              after {size(s.truncated.read_bytes)}, in {s.truncated.where}
            </dd>
          </>
        )}
        <dt>Streams</dt>
        <dd class="mono">{s.streams.map(stream).join(', ') || 'none'}</dd>
        {meta.value.data && (
          <>
            <dt>Steps</dt>
            <dd>{meta.value.data.steps_detail}</dd>
          </>
        )}
        <dt>Events</dt>
        <dd>{actions.map(([a, n]) => `${a} ${count(n)}`).join(', ') || 'none'}</dd>
      </dl>
    </Panel>
  );
}
