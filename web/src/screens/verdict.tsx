// The answer of explain: the cause, what to try first, the sum behind it, and the other fixes.

import { explain, explainAgain, stopExplaining } from '../explained';
import { percent, plural, seconds, size } from '../format';
import { At, Bytes, Copy, Delta, Go, Panel, Trouble, Wait } from '../parts/basic';
import { fixShown } from '../parts/curve';
import { quoted } from '../parts/frames';
import { current, meta } from '../state';
import type { Fix, Document as Explain } from '../types/explain.gen';
import type { Moment } from '../types/timeline.gen';
import type { ComponentChildren } from 'preact';

const meanings: Record<string, string> = {
  leak: 'memory grows from step to step',
  spike: 'one step needs more than the others',
  capacity: 'too little memory',
  shared_device: 'others hold memory that was needed',
  stranded: 'free memory is where the request cannot use it',
  absurd_request: 'one request is larger than all there is',
  fragmentation: 'enough memory, but not in one piece',
  none: '',
  open: 'the input does not show why',
};

function meaning(x: Explain): string {
  if (x.cause === 'none' && x.cause_text) return 'nothing failed yet, but memory grows from step to step';
  if (x.cause === 'none' && x.cause_confidence === 'open') return 'no failed request is known of';
  return meanings[x.cause] ?? '';
}

export function Verdict() {
  const got = explain.value;
  const x = got.data;
  return (
    <Panel title="Verdict" name="verdict" aside={x?.failure?.event != null && <MomentText m={x.failure} />}>
      {x ? (
        <>
          <Cause x={x} />
          {x.fixes[0] ? <First f={x.fixes[0]} /> : x.health && <CouldBeSmaller x={x} />}
          <Others x={x} />
        </>
      ) : got.error ? (
        <Trouble>{got.error}</Trouble>
      ) : got.stopped ? (
        <p data-field="explain-stopped">
          Stopped.{' '}
          <button class="small" onClick={explainAgain}>
            Replay it
          </button>
        </p>
      ) : (
        <div class="explaining">
          <Wait>{(current.value?.ooms ?? 0) > 0 ? 'Replaying the run to find out why' : 'Replaying the run with the standard settings'}</Wait>
          <button onClick={stopExplaining} data-ask="stop-explain">
            Stop
          </button>
        </div>
      )}
    </Panel>
  );
}

// Cause is the verdict in a sentence.
function Cause({ x }: { x: Explain }) {
  return (
    <>
      <p class={'verdict ' + (x.cause === 'none' && !x.cause_text ? 'good' : 'bad')}>
        <strong data-field="cause" data-value={x.cause}>
          {x.cause === 'none' && !x.cause_text ? 'nothing failed' : x.cause.replace('_', ' ')}
        </strong>{' '}
        <span class="tag" data-field="cause_confidence" title={confidence[x.cause_confidence]}>
          {x.cause_confidence}
        </span>{' '}
        <span>
          {meaning(x)}
          {x.where && `, in ${x.where}`}
          {x.capped && ', under a limit'}
        </span>
      </p>
      {x.warning && (
        <p class="warning" role="note">
          {x.warning}
        </p>
      )}
      <p data-field="cause_text">{x.cause_text ? x.cause_text + '.' : x.summary}</p>
    </>
  );
}

// Others is what else the cause could be.
function Others({ x }: { x: Explain }) {
  if (x.alternatives.length === 0) return null;
  return (
    <p class="muted others">
      {x.cause === 'open' ? 'It could be ' : 'It could also be '}
      {x.alternatives.map((a, i) => (
        <>
          {i > 0 && '; '}
          <strong>{a.verdict}</strong>, {a.when}
        </>
      ))}
      .
    </p>
  );
}

function First({ f }: { f: Fix }) {
  return (
    <div class="first-fix" data-field="first">
      <strong>Try this first</strong>
      <FixLine f={f} i={0} />
    </div>
  );
}

// CouldBeSmaller are the standard settings with which a run that did not fail
// reserves less.
function CouldBeSmaller({ x }: { x: Explain }) {
  const h = x.health!;
  const some = h.could_be_smaller;
  if (!meta.value.data?.events) return null;
  return (
    <div class="first-fix" data-field="smaller">
      <strong>Could be smaller</strong>
      {some.length === 0 && (
        <p>
          None of the standard settings reserves less. <Go screen="whatif">Try others</Go>
        </p>
      )}
      {some.map((s, i) => (
        <div>
          <Line text={s.export}>
            <Curve settings={s.settings} />
          </Line>
          <span>
            <Bytes n={s.peak_reserved_bytes} field={`health.could_be_smaller.${i}.peak_reserved_bytes`} /> reserved at the peak,{' '}
            <Delta n={-s.saved_bytes} /> <span class="muted">(about {Math.round(s.estimated_driver_ms)} ms in the driver)</span>
          </span>
        </div>
      ))}
    </div>
  );
}

// Told is the whole answer about a text, for which there is no run.
export function Told({ x }: { x: Explain }) {
  return (
    <div class="told-text" data-panel="told">
      <Cause x={x} />
      {x.fixes[0] && <First f={x.fixes[0]} />}
      {x.fixes.length > 1 && <FixList x={x} />}
      {x.after_upgrade.length > 0 && <h3>After an upgrade</h3>}
      <LaterList x={x} />
      <Others x={x} />
      {x.arithmetic.length > 0 && (
        <>
          <h3>The sum</h3>
          <ul class="rows">
            {x.arithmetic.map((line) => (
              <li>{line}</li>
            ))}
          </ul>
        </>
      )}
      <Remarks list={[...(x.notes ?? []), ...x.record]} />
    </div>
  );
}

function Remarks({ list }: { list: readonly string[] }) {
  if (list.length === 0) return null;
  return (
    <ul class="rows muted small-text">
      {list.map((text) => (
        <li>{text}</li>
      ))}
    </ul>
  );
}

const confidence: Record<string, string> = {
  certain: 'Computed from a replay that reproduces the file, or by arithmetic that leaves no other.',
  likely: 'The evidence has gaps.',
  open: 'The evidence leaves another verdict possible.',
};

function MomentText({ m }: { m: Moment }) {
  return (
    <>
      event <At event={m.event} />
      {m.since_start_us !== null && `, ${seconds(m.since_start_us)}`}
      {m.step !== null && `, step ${m.step}`}
      {m.annotation !== null && `, in ${m.annotation}`}
    </>
  );
}

// Numbers are the sum behind the verdict, or the health of a run that did not fail,
// and how far to trust them.
export function Numbers({ x }: { x: Explain }) {
  return (
    <Panel title={x.failure ? 'The sum' : 'Health'} name="sum">
      <Sum x={x} />
      <Health x={x} />
      {x.self_check && (
        <p class={(x.self_check.identical < x.self_check.events ? 'doubt' : 'muted') + ' small-text'} data-field="trust">
          How far to trust it: {x.self_check.note}.
        </p>
      )}
    </Panel>
  );
}

// Sum is the evidence, as the command prints it.
function Sum({ x }: { x: Explain }) {
  const v = x.evidence;
  if (!x.failure || !v || v.live_bytes === null || v.rounded_bytes === null) return null;
  const rest = v.available_bytes !== null && v.reserved_bytes !== null ? v.available_bytes - v.reserved_bytes : null;
  const row = (mark: string, n: number | null, text: ComponentChildren, field: string, strong = false) =>
    n === null ? null : (
      <tr class={strong ? 'total' : ''}>
        <td class="op">{mark}</td>
        <td class="right">
          <Bytes n={n} field={field} />
        </td>
        <td>{text}</td>
      </tr>
    );
  return (
    <table class="sum">
      <caption class="hidden">The sum at the failure</caption>
      <tbody>
        {row('', v.live_bytes, 'allocated', 'evidence.live_bytes')}
        {row(
          '+',
          v.rounded_bytes,
          v.request_bytes !== null && size(v.request_bytes) !== size(v.rounded_bytes)
            ? `request, rounded up from ${size(v.request_bytes)}`
            : 'request',
          'evidence.rounded_bytes',
        )}
        {row('=', v.live_bytes + v.rounded_bytes, 'needed', 'needed', true)}
        {row('', v.available_bytes, `available: ${there(x)}`, 'evidence.available_bytes')}
        {row('−', v.gap_bytes, 'missing', 'evidence.gap_bytes')}
        {v.largest_free_bytes !== null &&
          row(
            '',
            v.free_bytes,
            <>
              reserved and free; largest piece <Bytes n={v.largest_free_bytes} field="evidence.largest_free_bytes" />
              {v.free_usable_bytes !== null &&
                v.largest_usable_bytes !== null &&
                size(v.largest_usable_bytes) !== size(v.largest_free_bytes) && (
                  <>
                    ; <Bytes n={v.free_usable_bytes} /> of it in the request's pool and stream, largest piece{' '}
                    <Bytes n={v.largest_usable_bytes} />
                  </>
                )}
            </>,
            'evidence.free_bytes',
          )}
        {rest !== null &&
          rest >= 0 &&
          v.segment_bytes !== null &&
          row(
            '',
            rest,
            `not reserved yet: ${rest < v.segment_bytes ? 'too little' : 'enough'} for a new segment of ${size(v.segment_bytes)}`,
            'unreserved',
          )}
        {v.pending_bytes !== null &&
          v.pending_bytes > 0 &&
          row('', v.pending_bytes, 'freed, but waiting for another stream (pending)', 'evidence.pending_bytes')}
        {v.free_pools_bytes !== null &&
          v.free_pools_bytes > 0 &&
          row('', v.free_pools_bytes, 'free in private pools (CUDA graphs, MemPools)', 'evidence.free_pools_bytes')}
        {row('', v.outside_bytes, 'of the device not owned by PyTorch', 'evidence.outside_bytes')}
        <tr>
          <td />
          <td class="right muted">requested at</td>
          <td data-field="requested-at">{x.failure.site ?? (x.where ? `no call stack: in ${x.where}` : '(no call stack in the file)')}</td>
        </tr>
      </tbody>
    </table>
  );
}

function there(x: Explain): string {
  const { limit: l, evidence: v } = x;
  if (!l || l.max_bytes === null || !v || v.available_bytes === null || v.available_bytes < l.max_bytes)
    return 'reserved by PyTorch plus free on the device';
  switch (l.source) {
    case 'given':
      return 'the given limit';
    case 'recorded':
      return 'the recorded limit';
    case 'message':
      return 'the limit in the message';
  }
  return `the limit, inferred: ${l.min_bytes === null ? '?' : size(l.min_bytes)} to ${size(l.max_bytes)}`;
}

function Health({ x }: { x: Explain }) {
  const h = x.health;
  if (!h) return null;
  return (
    <dl class="facts">
      {h.fragmentation !== null && (
        <>
          <dt>Fragmentation</dt>
          <dd>{percent(h.fragmentation)}: 1 − peak allocated / peak reserved</dd>
        </>
      )}
      {h.headroom_bytes !== null && (
        <>
          <dt>Headroom</dt>
          <dd>
            <Bytes n={h.headroom_bytes} field="health.headroom_bytes" /> left under the limit
          </dd>
        </>
      )}
      <dt>Retries</dt>
      <dd>
        {plural(h.num_alloc_retries, 'release', 'releases')} of the cache to make room
        {h.retried_for[0] && (
          <>
            , most for <Bytes n={h.retried_for[0].request_bytes} field="health.retried_for.0.request_bytes" />
          </>
        )}
      </dd>
      {h.growth_bytes !== null && (
        <>
          <dt>Growth</dt>
          <dd>
            {h.growth_bytes > 0 && '+'}
            <Bytes n={h.growth_bytes} field="health.growth_bytes" /> of allocated memory from the end of step 2 to the last step's
          </dd>
        </>
      )}
      {h.empty_cache_in_steps && (
        <>
          <dt>empty_cache()</dt>
          <dd>
            {plural(h.empty_cache_in_steps.calls, 'call', 'calls')} in steps; without:{' '}
            <Bytes n={h.empty_cache_in_steps.peak_reserved_without_bytes} field="health.empty_cache_in_steps.peak_reserved_without_bytes" /> peak reserved
          </dd>
        </>
      )}
      {h.releasable_bytes !== null && (
        <>
          <dt>Releasable</dt>
          <dd>
            <Bytes n={h.releasable_bytes} field="health.releasable_bytes" /> by empty_cache() at the end of the file
          </dd>
        </>
      )}
    </dl>
  );
}

// Fixes are the others, in the order in which one would try them.
export function Fixes({ x }: { x: Explain }) {
  return (
    <Panel title="Or" name="fixes" aside="tried by replay where it says how far the run gets">
      <FixList x={x} />
    </Panel>
  );
}

function FixList({ x }: { x: Explain }) {
  return (
    <ol class="fixes" start={2}>
      {x.fixes.slice(1).map((f, i) => (
        <li>
          <FixLine f={f} i={i + 1} />
        </li>
      ))}
    </ol>
  );
}

// AfterUpgrade has settings that help but that the PyTorch of the recording does not know.
export function AfterUpgrade({ x }: { x: Explain }) {
  return (
    <Panel title="After an upgrade" name="after-upgrade">
      <LaterList x={x} />
    </Panel>
  );
}

function LaterList({ x }: { x: Explain }) {
  return (
    <ul class="fixes">
      {x.after_upgrade.map((f) => (
        <li>
          {f.export && <Line text={f.export} />}
          {f.requires}: {f.detail}
        </li>
      ))}
    </ul>
  );
}

// Line is something to type, and what can be done with it.
function Line({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="export">
      <code>{text}</code>
      <Copy text={text} />
      {children}
    </div>
  );
}

// Curve asks What-if for a setting, or for the recorded ones under another limit.
function Curve({ settings, limit }: { settings: string; limit?: number }) {
  if (!meta.value.data?.events) return null;
  return (
    <Go
      screen="whatif"
      change={{ sets: settings, limit: limit ?? null, memory: null, oom: null, tune: null, goal: null }}
      title="The memory of the run with it, over the recorded one"
    >
      Show the curve
    </Go>
  );
}

// Before and after of a change of the program, in the memory curve.
function Changed({ i }: { i: number }) {
  const on = fixShown.value === i;
  return (
    <Go screen="overview" change={{ fix: on ? null : i }} title="The memory of the run with this change, over the recorded one">
      {on ? 'Hide the curve' : 'Show the curve'}
    </Go>
  );
}

function FixLine({ f, i }: { f: Fix; i: number }) {
  const facts: string[] = [];
  const typed = f.export || f.code;
  const more =
    f.kind === 'setting' && f.settings ? (
      <Curve settings={f.settings} />
    ) : f.kind === 'memory' && f.smallest_limit_bytes !== null ? (
      <Curve settings="none" limit={f.smallest_limit_bytes} />
    ) : f.code && f.carries && meta.value.data?.events ? (
      <Changed i={i} />
    ) : f.line && meta.value.data?.events ? (
      <Go screen="timeline" change={{ stack: quoted(f.line.filename, f.line.line), only: true }} title="What this line allocates, stacked alone">
        Show its memory
      </Go>
    ) : null;
  const need = f.smallest_limit_bytes !== null ? size(f.smallest_limit_bytes) : '';
  if (need && !f.detail.includes(need)) facts.push(`needs a limit of ${need}`);
  if (f.kind === 'setting' && f.estimated_driver_ms !== null) facts.push(`about ${Math.round(f.estimated_driver_ms)} ms in the driver`);
  return (
    <div>
      {typed && <Line text={typed}>{more}</Line>}
      <span>{f.detail}</span>
      {facts.length > 0 && <span class="muted"> ({facts.join(', ')})</span>} {!typed && more}
    </div>
  );
}
