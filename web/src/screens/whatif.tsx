// What-if: the recorded calls under other settings and limits, replayed; or the
// settings that a search finds best.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo } from 'preact/hooks';
import { Result } from '../asking';
import { count, exact, plural, size, ticks } from '../format';
import { useKeys } from '../keys';
import { Bytes, Copy, Empty, Panel, Trouble, Wait } from '../parts/basic';
import { CurvePanel, wholeCurve } from '../parts/curve';
import { Lines, Swatch, type Chart } from '../parts/lines';
import { RangePanel } from '../parts/range';
import { lineStyle } from '../palette';
import { place, range, run } from '../route';
import { meta, select } from '../state';
import { selectBetween } from '../timeline/view';
import { ink, theme } from '../theme';
import type { Meta } from '../types/view.gen';
import { Form } from '../whatif/form';
import { confText, goals, sources, told, wrongly } from '../whatif/question';
import { follow, leave, searchStaleness, slotOf, staleness, stop, type Tried } from '../whatif/state';
import { Failures, Outcomes, type Look } from '../whatif/table';
import type { Document as Tune } from '../types/tune.gen';
import type { Document as Answer } from '../types/whatif.gen';
import type { Going } from '../work';

export function WhatIf() {
  const m = meta.value.data;
  const id = run.value!;
  const asked = told(place.value.params);
  const wrong = wrongly(place.value.params);
  const key = JSON.stringify(asked);
  const s = slotOf(id);
  // The curve comes first: a replay takes all cores.
  const curve = m && m.events > 0 ? wholeCurve().value : {};
  const ready = !!(curve.data || curve.error);
  // The address holds what was asked, so that a link asks it again. It changes at
  // once: an effect that waits for a frame may come after the next question.
  useLayoutEffect(() => follow(id, asked, key, ready), [key, id, ready]);
  useLayoutEffect(() => () => leave(id), [id]);
  useKeys(
    'What-if',
    () => [
      { keys: ['s'], text: 'Stop', run: () => stop(id) },
      { keys: ['e'], text: 'Edit the settings', run: () => document.querySelector<HTMLInputElement>('.variants input')?.focus() },
    ],
    [id],
  );
  if (!m) return <Wait>Asking what there is</Wait>;
  if (m.events === 0) return <Empty>The file has no events: recording was off. There is nothing to replay.</Empty>;
  const [tries, search] = [s.tries.value, s.search.value];
  const stale = staleness(s);
  const error = wrong ?? search.error ?? (stale === null ? tries.error : null);
  return (
    <div class="whatif">
      <div class="with-side">
        <aside class="side at-left" aria-label="What to try">
          <Form run={id} m={m} />
          <div class="whatif-status">
            {(tries.going || search.going) && <Doing tries={tries.going} search={search.going} tried={tries.result !== null && stale === null} onStop={() => stop(id)} />}
            {!tries.going && !search.going && (tries.stopped || search.stopped) && (
              <p class="muted">Stopped. {tries.result || search.result ? 'What was known by then is shown.' : 'Nothing was known yet.'}</p>
            )}
          </div>
        </aside>
        <div class="whatif-main" tabIndex={0} role="region" aria-label="Answers">
          {error && <Trouble>{error}</Trouble>}
          {search.result && (
            <Result stale={searchStaleness(s)} why={search.going ? 'searching' : 'press Tune to search for what the form has'} name="tune">
              <Recommended t={search.result.tune} />
            </Result>
          )}
          {tries.result ? (
            <Result stale={stale} why={<Pending error={tries.error} stopped={tries.stopped} search={search.going !== null} />} name="whatif">
              <Answered
                tried={tries.result}
                waiting={tries.going !== null}
                recommended={search.result && searchStaleness(s) === null ? search.result.tune.recommended.settings : null}
                m={m}
              />
            </Result>
          ) : (
            <Panel title="Memory as recorded" name="whatif-recorded" aside={tries.going ? 'the settings are being tried' : undefined}>
              <CurvePanel />
            </Panel>
          )}
        </div>
      </div>
    </div>
  );
}

// Pending is what becomes of what the form has.
function Pending({ error, stopped, search }: { error: string | null; stopped: boolean; search: boolean }) {
  if (error) return <span data-field="whatif-trouble">{error}</span>;
  const text = stopped ? 'what the form has was stopped' : search ? 'what the search finds comes next' : 'what the form has is being tried';
  return <span class="muted">{text}</span>;
}

// Doing is how far work is; tried: the replays are made, what each needs is not yet
// known.
function Doing({ tries, search, tried, onStop }: { tries: Going | null; search: Going | null; tried: boolean; onStop: () => void }) {
  const going = (search ?? tries)!;
  const p = going.progress;
  const budget = p?.budget_seconds ?? 0;
  const part = p ? (p.total ? p.done / p.total : budget > 0 ? (p.seconds ?? 0) / budget : null) : null;
  const text = going.stopping
    ? 'Stopping'
    : going.waiting
      ? 'Waiting: another replay is under way'
      : !search && tried
        ? 'Finding what each needs'
        : !p
          ? 'Replaying the recording'
          : search
            ? `${plural(p.done, 'setting')} evaluated, ${Math.min(p.seconds ?? 0, budget).toFixed(0)} of ${budget} s`
            : `${count(p.done)} of ${plural(p.total ?? 0, 'setting')} replayed`;
  return (
    <div class="doing">
      <Wait>{text}</Wait>
      <progress aria-label="Progress" max={1} {...(part === null ? {} : { value: Math.min(1, part) })} />
      <button onClick={onStop} disabled={going.stopping} title="Stop (s)" data-ask="stop">
        Stop
      </button>
    </div>
  );
}

function ending(t: Tune): string {
  if (t.interrupted) return 'stopped';
  if (t.cut_off) return 'the time was up';
  return t.finished ? 'all there are' : 'the most for a run of this length';
}

// Recommended is the answer of tune.
function Recommended({ t }: { t: Tune }) {
  const r = t.recommended;
  const more = r.peak_reserved_bytes - t.current.peak_reserved_bytes;
  return (
    <Panel
      title={r.recorded ? 'Keep the settings' : 'Recommended'}
      name="tune"
      aside={`for ${goals[t.goal]}: ${plural(t.evaluated, 'setting')} evaluated in ${t.elapsed_seconds.toFixed(1)} s, ${ending(t)}`}
    >
      {!r.recorded && (
        <div class="export">
          <code data-field="recommended.export">{r.export}</code>
          {more > 0 && (
            <span class="more" data-field="recommended.more" data-delta={more} title={exact(more)}>
              reserves {size(more)} more
            </span>
          )}
          <Copy text={r.export} />
        </div>
      )}
      <p data-field="recommended.reason">{r.reason}</p>
      {r.requires && <p class="muted">{r.requires}</p>}
      <dl class="facts">
        <dt>Smallest limit</dt>
        <dd>
          <Bytes n={r.smallest_limit_bytes} field="recommended.smallest_limit_bytes" />
          {!r.recorded && (
            <>
              {' '}
              <span class="muted">against</span> <Bytes n={t.current.smallest_limit_bytes} field="current.smallest_limit_bytes" />{' '}
              <span class="muted">with the recorded settings</span>
            </>
          )}
        </dd>
        <dt>Peak reserved</dt>
        <dd>
          <Bytes n={r.peak_reserved_bytes} field="recommended.peak_reserved_bytes" />
          {!r.recorded && (
            <>
              {' '}
              <span class="muted">against</span> <Bytes n={t.current.peak_reserved_bytes} />{' '}
              <span class="muted">with the recorded settings, without a limit</span>
            </>
          )}
        </dd>
        {t.others.length > 0 && (
          <>
            <dt>Below</dt>
            <dd>the recommended settings, and {plural(t.others.length, 'other')} that came close</dd>
          </>
        )}
        <dt>No setting needs less than</dt>
        <dd>
          <Bytes n={t.lower_bound_bytes} field="lower_bound_bytes" /> <span class="muted">the peak of live bytes</span>
        </dd>
      </dl>
      {t.notes.map((n) => (
        <p class="muted small-text">{n}</p>
      ))}
    </Panel>
  );
}

function Answered({ tried, waiting, recommended, m }: { tried: Tried; waiting: boolean; recommended: string | null; m: Meta }) {
  const { answer, choices, question } = tried;
  const picked = useSignal<number | null>(null);
  const over = useSignal<number | null>(null);
  const shown = over.value ?? picked.value;
  const released = Math.max(0, ...[...choices.values()].map((c) => c.start_released_bytes));
  const i = ink.value;
  const looks: Look[] = useMemo(
    () => answer.results.map((r, k) => (r.recorded ? { colour: i.reserved, dash: [] } : lineStyle(k - 1, theme.value))),
    [answer, i],
  );
  const live = wholeCurve().value.data;
  const chart = useMemo<Chart>(() => {
    const failures = answer.results.filter((r) => r.fails && r.recorded && r.first_failure?.event != null);
    return {
      lines: answer.results.flatMap((r, k) => {
        const c = r.curve;
        if (!c || c.event.length === 0) return [];
        return [
          {
            name: `${r.recorded ? 'recorded: ' : ''}${confText(r.settings)}`,
            ...looks[k]!,
            xs: c.event.map((_, j) => (j === 0 ? 0 : c.event[j - 1]! + 1)),
            ys: c.reserved_bytes,
            end: c.event[c.event.length - 1]! + 1,
            group: k,
            fails: r.fails && answer.on_oom === 'die',
          },
        ];
      }),
      ...(live ? { ground: { xs: live.x, ys: live.active, end: m.events } } : {}),
      from: 0,
      to: Math.max(1, m.events),
      rules: answer.limit.bytes !== null ? [{ bytes: answer.limit.bytes, text: 'limit' }] : [],
      failures: failures.map((r) => r.first_failure!.event! + 0.5),
      ticks: (n) =>
        ticks(0, m.events, n)
          .filter((t) => t % 1 === 0)
          .map((t) => ({ at: t, text: t === 0 ? 'event 0' : count(t) })),
      place: (x) => `event ${count(Math.min(m.events - 1, Math.floor(x)))}`,
      label: `Reserved memory over ${count(m.events)} events: ${answer.results
        .map((r) => `${confText(r.settings)} at most ${size(r.peak_reserved_bytes)}${r.fails ? ', fails' : ''}`)
        .join('; ')}.`,
    };
  }, [answer, live, looks, m]);
  return (
    <>
      <Panel
        title="Reserved memory"
        name="whatif-curves"
        aside={
          <span class={answer.self_check.identical < answer.self_check.events ? 'doubt' : undefined} data-field="trust">
            {trust(answer)}
          </span>
        }
      >
        <div class="whatif-chart">
          <Lines
            chart={chart}
            picked={shown}
            onClick={(x) => select(Math.floor(x))}
            onDrag={selectBetween}
            chosen={range.value && { from: range.value.after + 1, to: range.value.until + 1 }}
          />
          <ul class="whatif-legend" aria-label="Lines">
            {answer.results.map((r, k) => (
              <li>
                <button
                  class="variant-name"
                  aria-pressed={picked.value === k}
                  title={confText(r.settings)}
                  onClick={() => (picked.value = picked.value === k ? null : k)}
                  onMouseEnter={() => (over.value = k)}
                  onMouseLeave={() => (over.value = null)}
                >
                  <Swatch {...looks[k]!} />
                  <span>{r.recorded ? 'recorded' : confText(r.settings)}</span>
                </button>
              </li>
            ))}
            <li>
              <span class="key live">active, as recorded</span>
            </li>
            {answer.results.some((r) => r.fails) && <li class="muted">✕ ends with a failure</li>}
          </ul>
        </div>
        <RangePanel />
      </Panel>
      <Panel title="Outcomes" name="outcomes" aside={conditions(answer)}>
        <Outcomes
          answer={answer}
          choices={choices}
          waiting={waiting}
          question={question}
          recommended={recommended}
          looks={looks}
          picked={picked.value}
          onPick={(k) => (picked.value = k)}
        />
        {answer.not_run.length > 0 && (
          <p class="muted">Stopped before these were tried: {answer.not_run.map(confText).join('; ')}</p>
        )}
      </Panel>
      <Panel title="What fails first" name="failures">
        <Failures answer={answer} />
      </Panel>
      <Panel title="How far to trust it" name="trust">
        <ul class="rows">
          <li data-field="self_check" class={answer.self_check.identical < answer.self_check.events ? 'doubt' : undefined}>
            {answer.self_check.note}
          </li>
          {answer.notes.map((n) => (
            <li>{n}</li>
          ))}
          {released > 0 && answer.results.every((r) => r.start_released_bytes === 0) && (
            <li>
              Smallest limits and needs are of replays that begin without the {size(released)} that were cached before the first event:
              with less than was reserved there, the run would not have come there with them.
            </li>
          )}
          <li class="muted">
            Every line replays the recorded calls: it holds as long as the program makes the same calls. Driver time is an estimate
            for comparing settings.
          </li>
        </ul>
      </Panel>
    </>
  );
}

function conditions(a: Answer): string {
  const limit = a.limit.bytes === null ? 'no limit' : `limit ${size(a.limit.bytes)}, ${sources[a.limit.source] ?? a.limit.source}`;
  const memory = a.device_memory.bytes;
  return memory === null ? limit : `${limit}; device ${size(memory)}, ${sources[a.device_memory.source] ?? ''}`;
}

function trust(a: Answer): string {
  const { identical, events } = a.self_check;
  return `the model reproduces ${identical === events ? 'all' : `${count(identical)} of the`} ${count(events)} recorded events`;
}
