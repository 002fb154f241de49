// Plan: what a run will take before it is made, from a model's config.json.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { count } from '../format';
import { useKeys } from '../keys';
import { Empty, Trouble, Wait } from '../parts/basic';
import { taker } from '../parts/files';
import { place, put, screen } from '../route';
import { runs, say } from '../state';
import { Beside } from '../plan/against';
import { Form } from '../plan/form';
import { Levers, Trail } from '../plan/levers';
import { openConfig } from '../plan/model';
import { againstOf, asked, command, first, fitting, inAddress, keyOf, same, settled, tooLong, withFlags, type Question } from '../plan/question';
import { CommandLine, Made, Recomputed, StepPanel, Totals, Trust, Verdict } from '../plan/result';
import { ShareDialog, shareShown } from '../plan/share';
import { ask, at, before, draft, drop, going, offer, step, stop, stopped, trail, trouble, type Step } from '../plan/state';
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
    if (!q) return;
    if (!draft.peek() || !same(fitting(draft.peek()!, o), q)) draft.value = q;
    ask(q, against, o);
  }, [key, against]);
  useLayoutEffect(() => {
    draft.value ??= q ?? first(o);
    taker.value = (file) => openConfig(file, o, true);
    return () => {
      taker.value = null;
      if (screen.peek() !== 'plan') drop();
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
  // The address may have what could not be planned; the last plan is the way back.
  const astray = trouble.value !== null || stopped.value || said?.error != null;

  const want = (next: Question) => {
    const fit = fitting(next, o);
    if (tooLong(fit.config, o)) return say('The config is too long for the page: use ashlar plan on the command line.');
    put(inAddress(fit, o), 'push');
    ask(fit, against, o);
  };
  const pull = (l: Lever) => {
    if (!shown) return;
    pulled.current = true;
    want(withFlags(settled(shown.question, shown.answer), l.flags));
  };
  const goTo = (i: number) => {
    const s = trail.value[i];
    if (!s) return;
    put(inAddress(s.question, o), 'push');
    ask(s.question, against, o);
  };

  useKeys(
    'Plan',
    () => [
      { keys: ['r'], text: 'Plan what the form says', run: () => document.querySelector<HTMLButtonElement>('[data-ask=plan]')?.click() },
      { keys: ['e'], text: 'Edit: to the batch', run: toBatch },
      { keys: ['u'], text: 'Undo: back to the plan before', run: () => document.querySelector<HTMLButtonElement>('[data-act=undo]')?.click() },
      { keys: ['s'], text: 'Stop, or share', run: () => (going.peek() ? stop() : (shareShown.value = true)) },
    ],
    [],
  );
  const form = draft.value;
  return (
    <div class="plan">
      <div class="with-side">
        <aside class="side at-left" aria-label="What to plan">
          {form && <Form q={form} o={o} busy={busy} onAsk={want} />}
        </aside>
        <div class="plan-main" tabIndex={0} role="region" aria-label="The plan" ref={answers}>
          <Trail onGo={goTo} astray={astray} />
          {going.value && <Doing going={going.value} />}
          {said?.error && <Trouble>{said.error}</Trouble>}
          {trouble.value && (
            <Trouble>
              <span data-field="plan-trouble">{trouble.value}</span>
            </Trouble>
          )}
          {stopped.value && !busy && (
            <p class="muted">Stopped before there was an answer.</p>
          )}
          {shown && q && !astray && <Planned s={shown} o={o} busy={busy} onPull={pull} />}
          {!busy && !q && !said?.error && <Hint />}
        </div>
      </div>
      <ShareDialog q={q} o={o} onOpen={want} />
    </div>
  );
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

function Planned({ s, o, busy, onPull }: { s: Step; o: Offer; busy: boolean; onPull: (l: Lever) => void }) {
  const a = s.answer;
  const old = before.value?.answer ?? null;
  const run = s.against === null ? null : (runs.value.find((r) => r.id === s.against) ?? null);
  return (
    <>
      <Verdict q={s.question} a={a} o={o} />
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
      {s.against !== null && <Beside a={a.against ?? null} name={run?.label ?? `run ${s.against}`} trouble={s.trouble} />}
      <CommandLine text={command(s.question, o, run ? recording(run) : [])} onShare={() => (shareShown.value = true)} />
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
    <div class="doing">
      <Wait>{text}</Wait>
      <progress aria-label="Progress" />
      <button onClick={stop} disabled={going.stopping} title="Stop (s)" data-ask="stop">
        Stop
      </button>
    </div>
  );
}

function Hint() {
  return (
    <Empty>
      The model is run symbolically, op by op, as PyTorch and transformers run it, and every tensor goes through PyTorch's allocator rules:
      whether it fits, what the peak is made of, and what would save memory. No GPU, no weights and no file are needed. Choose a model, or
      paste its config.json, and press Plan.
    </Empty>
  );
}
