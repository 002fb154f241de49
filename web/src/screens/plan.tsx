// Plan: what a run will take before it is made, from a model's config.json.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { Result } from '../asking';
import { count } from '../format';
import { useKeys } from '../keys';
import { Trouble, Wait } from '../parts/basic';
import { taker } from '../parts/files';
import { place, screen } from '../route';
import { runs } from '../state';
import { Beside } from '../plan/against';
import { Dry } from '../plan/dry';
import { Form } from '../plan/form';
import { Levers, Trail } from '../plan/levers';
import { openConfig } from '../plan/model';
import { againstOf, asked, command, first, fitting, keyOf, same, settled, withFlags } from '../plan/question';
import { Made, Recomputed, StepPanel, Totals, Trust, Verdict } from '../plan/result';
import { ShareDialog, shareShown } from '../plan/share';
import { ask, asked as inForm, askNow, at, before, draft, going, leave, ledger, offer, staleness, step, stop, stopped, trail, trouble, want, type Step } from '../plan/state';
import type { Lever } from '../types/plan.gen';
import type { Offer, Run } from '../types/view.gen';
import type { Going } from '../work';

export function Plan() {
  const got = offer.value;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  if (!got.data) return <Wait>Asking what can be planned</Wait>;
  return <Screen o={got.data} />;
}

function Screen({ o }: { o: Offer }) {
  const said = asked(place.value.params, o);
  const q = said?.question ?? null;
  const against = againstOf(place.value.params);
  const key = q ? keyOf(q) : '';
  // The address tells what was asked: a link asks it again. The form follows it,
  // before anybody can have typed into it.
  useLayoutEffect(() => {
    if (!q) return said?.error ? leave() : undefined;
    if (!draft.peek() || !same(fitting(draft.peek()!, o), q)) draft.value = q;
    ask(q, against, o);
  }, [key, against, said?.error]);
  useLayoutEffect(() => {
    draft.value ??= q ?? first(o);
    if (!said?.error) askNow();
    taker.value = (file) => openConfig(file, o, true);
    return () => {
      taker.value = null;
      if (screen.peek() !== 'plan') leave();
    };
  }, []);
  // What a search found is what the form goes on from.
  const found = step.value;
  useLayoutEffect(() => {
    if (found && draft.peek() && same(fitting(draft.peek()!, o), found.question)) draft.value = settled(draft.peek()!, found.answer);
  }, [found?.answer]);
  const { answers, pulled } = useFocus();
  const busy = going.value !== null;
  const shown = step.value;

  const pull = (l: Lever) => {
    if (!shown) return;
    pulled.current = true;
    want(withFlags(settled(shown.question, shown.answer), l.flags), o);
  };
  // Back is to the plan that is shown, if the form has something else.
  const astray = staleness.value !== null || said?.error != null;
  const goTo = (i: number) => {
    const s = trail.value[i];
    if (s) want(s.question, o);
  };

  useKeys(
    'Plan',
    () => [
      { keys: ['e'], text: 'Edit: to the batch', run: toBatch },
      { keys: ['u'], text: 'Undo: back to the plan before', run: () => document.querySelector<HTMLButtonElement>('[data-act=undo]')?.click() },
      { keys: ['s'], text: 'Stop, or share', run: () => (going.peek() ? stop() : (shareShown.value = true)) },
    ],
    [],
  );
  const form = draft.value;
  const noted = shown !== null && !said?.error && staleness.value !== null; // what is wrong is said there
  const run = against === null ? null : (runs.value.find((r) => r.id === against) ?? null);
  const line = inForm.value ? command(inForm.value, o, run && !ledger.value ? recording(run) : [], ledger.value?.name) : '';
  return (
    <div class="plan">
      <div class="with-side">
        <aside class="side at-left" aria-label="What to plan">
          {form && <Form q={form} o={o} busy={busy} command={line} onMax={(max) => want({ ...form, max }, o)} onShare={() => (shareShown.value = true)} />}
        </aside>
        <div class="plan-main" tabIndex={0} role="region" aria-label="The plan" ref={answers}>
          {ledger.value && inForm.value && <Dry file={ledger.value} q={inForm.value} o={o} />}
          <div class="plan-status" hidden={ledger.value !== null}>
            <Trail onGo={goTo} astray={astray} />
            {going.value && <Doing going={going.value} />}
          </div>
          {said?.error && <Trouble>{said.error}</Trouble>}
          {trouble.value && !noted && !ledger.value && (
            <Trouble>
              <Told />
            </Trouble>
          )}
          {stopped.value && !busy && !noted && <p class="muted">Stopped before there was an answer.</p>}
          {shown && !said?.error && !ledger.value && (
            <Result stale={staleness.value} why={<Pending />} name="plan">
              <Planned s={shown} o={o} against={against} busy={busy || staleness.value !== null} onPull={pull} />
            </Result>
          )}
        </div>
      </div>
      <ShareDialog q={inForm.value} o={o} onOpen={(next) => want(next, o)} />
    </div>
  );
}

function Told() {
  return <span data-field="plan-trouble">{trouble.value}</span>;
}

// Pending is what becomes of what the form has.
function Pending() {
  if (trouble.value) return <Told />;
  return <span class="muted">{stopped.value ? 'the plan of what the form has was stopped' : 'what the form has is being planned'}</span>;
}

// useFocus moves the focus to the verdict after a lever was pressed: it is no
// lever of the next plan, and what it did is said there.
function useFocus() {
  const answers = useRef<HTMLDivElement>(null);
  const pulled = useRef(false);
  const now = step.value?.answer;
  useLayoutEffect(() => {
    if (!pulled.current) return;
    pulled.current = false;
    answers.current?.scrollTo({ top: 0 });
    answers.current?.querySelector<HTMLElement>('.plan-verdict')?.focus({ preventScroll: true });
  }, [now]);
  return { answers, pulled };
}

function toBatch(): void {
  const field = document.querySelector<HTMLInputElement>('.plan-form input[name=batch]');
  field?.focus();
  field?.select();
}

// recording is how the command names a run: by its file, and by its device where
// the file has several.
function recording(r: Run): string[] {
  const several = runs.value.filter((other) => other.file === r.file).length > 1;
  return ['--against', r.file, ...(several && r.device !== null ? ['--device', String(r.device)] : [])];
}

function Planned({ s, o, against, busy, onPull }: { s: Step; o: Offer; against: number | null; busy: boolean; onPull: (l: Lever) => void }) {
  const a = s.answer;
  const old = before.value?.answer ?? null;
  const run = runs.value.find((r) => r.id === s.against) ?? null;
  return (
    <>
      <Verdict q={s.question} a={a} o={o} busy={busy} onPull={onPull} />
      <Totals a={a} before={old} />
      <Recomputed a={a} />
      <div class="plan-grid">
        <div class="column">
          <StepPanel a={a} />
          <Made a={a} before={old} />
        </div>
        <div class="column">
          <Levers a={a} busy={busy} onPull={onPull} />
          <Trust a={a} />
        </div>
      </div>
      {s.against !== null && s.against === against && <Beside a={a.against ?? null} name={run?.label ?? `run ${s.against}`} trouble={s.trouble} />}
      <span hidden data-field="planned" data-key={keyOf(s.question)} data-at={at.value} />
    </>
  );
}

function Doing({ going }: { going: Going }) {
  const done = going.progress?.done ?? 0;
  const text = going.stopping
    ? 'Stopping'
    : going.waiting
      ? 'Waiting: something else takes all cores'
      : `Planning${done > 1 ? `: ${count(done)} runs planned` : ''}`;
  return (
    <div class="doing plan-doing">
      <Wait>{text}</Wait>
      <button onClick={stop} disabled={going.stopping} title="Stop (s)" data-ask="stop">
        Stop
      </button>
    </div>
  );
}
