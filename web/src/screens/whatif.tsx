// What-if: the recorded calls under other settings and limits, replayed; or the
// settings that a search finds best.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo } from 'preact/hooks';
import { count, plural, size, ticks } from '../format';
import { useKeys } from '../keys';
import { Bytes, Copy, Empty, Panel, Trouble, Wait } from '../parts/basic';
import { wholeCurve } from '../parts/curve';
import { Lines, type Chart } from '../parts/lines';
import { RangePanel } from '../parts/range';
import { lineStyle } from '../palette';
import { place, put, range, run } from '../route';
import { meta, select } from '../state';
import { selectBetween } from '../timeline/view';
import { ink, theme } from '../theme';
import type { Meta } from '../types/view.gen';
import { Form } from '../whatif/form';
import { asInAddress, asked, confText, inAddress, sources, wrongly, type Question } from '../whatif/question';
import { same, start, stateOf, stop, type State } from '../whatif/state';
import { Failures, Outcomes, type Look } from '../whatif/table';
import type { Document as Tune } from '../types/tune.gen';
import type { Document as Answer } from '../types/whatif.gen';
import type { Going } from '../work';

export function WhatIf() {
  const m = meta.value.data;
  const id = run.value!;
  const q = asked(place.value.params);
  const wrong = wrongly(place.value.params);
  const key = JSON.stringify(q);
  // What the address does not ask is not answered: going back takes the answer
  // away with the question.
  const last = stateOf(id).value;
  const s = q ? last : { ...last, answer: null, tune: null, error: null, stopped: false };
  // The address holds what was asked, so that a link asks it again. It changes at
  // once: an effect that waits for a frame may come after the next question.
  useLayoutEffect(() => {
    if (q && m && m.events > 0 && !same(stateOf(id).value.question, q)) start(id, q);
  }, [key, id, !m]);
  const ask = (next: Question) => {
    put(inAddress(next), 'push');
    start(id, asInAddress(next));
  };
  useKeys(
    'What-if',
    () => [
      { keys: ['s'], text: 'Stop', run: () => stop(id) },
      {
        keys: ['r'],
        text: 'Try the settings of the form',
        run: () => document.querySelector<HTMLButtonElement>('[data-ask=try]')?.click(),
      },
      { keys: ['e'], text: 'Edit the settings', run: () => document.querySelector<HTMLInputElement>('.variants input')?.focus() },
    ],
    [id],
  );
  if (!m) return <Wait>Asking what there is</Wait>;
  if (m.events === 0) return <Empty>The file has no events: recording was off. There is nothing to replay.</Empty>;
  return (
    <div class="whatif">
      <div class="with-side">
        <aside class="side at-left" aria-label="What to try">
          <Form key={key} run={id} about={key} first={q} m={m} busy={s.going !== null} onAsk={ask} />
        </aside>
        <div class="whatif-main" tabIndex={0} role="region" aria-label="Answers">
          {s.going && <Doing going={s.going} tuning={s.question?.tune != null && !s.tune} onStop={() => stop(id)} />}
          {(wrong ?? s.error) && <Trouble>{wrong ?? s.error}</Trouble>}
          {s.stopped && !s.going && (
            <p class="muted">Stopped. {s.answer || s.tune ? 'What was known by then is shown.' : 'Nothing was known yet.'}</p>
          )}
          {s.tune && <Found t={s.tune} />}
          {s.answer && s.question && <Answered s={s} answer={s.answer} question={s.question} m={m} />}
          {!s.going && !s.answer && !s.error && !s.tune && !s.stopped && <Hint last={q ? null : last.question} />}
        </div>
      </div>
    </div>
  );
}

function Hint({ last }: { last: Question | null }) {
  return (
    <>
      <Empty>
        The calls of this recording are replayed through PyTorch's allocator rules under each of the settings, on a simulated device.
        Choose some and try them; no GPU is needed.
      </Empty>
      {last && (
        <p class="empty">
          <button class="link" data-ask="last" onClick={() => put(inAddress(last), 'push')}>
            Show the last answer again
          </button>
        </p>
      )}
    </>
  );
}

function Doing({ going, tuning, onStop }: { going: Going; tuning: boolean; onStop: () => void }) {
  const p = going.progress;
  const budget = p?.budget_seconds ?? 0;
  const part = p ? (p.total ? p.done / p.total : budget > 0 ? (p.seconds ?? 0) / budget : null) : null;
  const text = going.stopping
    ? 'Stopping'
    : going.waiting
      ? 'Waiting: another replay is under way'
      : !p
        ? 'Replaying the recording'
        : tuning
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

// Found is the answer of tune.
function Found({ t }: { t: Tune }) {
  const r = t.recommended;
  return (
    <Panel
      title={r.recorded ? 'Keep the settings' : 'Recommended'}
      name="tune"
      aside={`${plural(t.evaluated, 'setting')} evaluated in ${t.elapsed_seconds.toFixed(1)} s, ${ending(t)}`}
    >
      {!r.recorded && (
        <div class="export">
          <code data-field="recommended.export">{r.export}</code>
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
        {t.others.length > 0 && (
          <>
            <dt>Below</dt>
            <dd>the recommended settings, and {plural(t.others.length, 'other')} that came close</dd>
          </>
        )}
        <dt>No setting needs less than</dt>
        <dd>
          <Bytes n={t.lower_bound_bytes} field="lower_bound_bytes" /> <span class="muted">the peak of allocated bytes</span>
        </dd>
      </dl>
    </Panel>
  );
}

function Answered({ s, answer, question, m }: { s: State; answer: Answer; question: Question; m: Meta }) {
  const picked = useSignal<number | null>(null);
  const released = Math.max(0, ...[...s.choices.values()].map((c) => c.start_released_bytes));
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
          <span class="legend">
            <span class="key live">active, as recorded</span>
            <span>✕ ends with a failure</span>
            <span class={answer.self_check.identical < answer.self_check.events ? 'doubt' : undefined} data-field="trust">
              {trust(answer)}
            </span>
          </span>
        }
      >
        <Lines
          chart={chart}
          picked={picked.value}
          onClick={(x) => select(Math.floor(x))}
          onDrag={selectBetween}
          chosen={range.value && { from: range.value.after + 1, to: range.value.until + 1 }}
        />
        <RangePanel />
      </Panel>
      <Panel title="Outcomes" name="outcomes" aside={conditions(answer)}>
        <Outcomes
          answer={answer}
          choices={s.choices}
          waiting={s.going !== null}
          question={question}
          recommended={s.tune ? s.tune.recommended.settings : null}
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
          {(s.tune?.notes ?? []).filter((n) => !answer.notes.includes(n)).map((n) => (
            <li>{n}</li>
          ))}
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
