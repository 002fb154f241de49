// What would save memory: each lever was planned, and pressing it plans again with
// it. The plans that were made are the way back.

import { size } from '../format';
import { Bytes, Panel } from '../parts/basic';
import { at, before, trail } from './state';
import type { Lever } from '../types/plan.gen';
import type { Outcome } from './words';

export function Levers({ a, busy, onPull }: { a: Outcome; busy: boolean; onPull: (l: Lever) => void }) {
  return (
    <Panel title="What would save memory" name="levers" aside="cheapest first; press one to plan with it">
      {a.levers.length === 0 && <p class="muted">Nothing of what was tried saves anything here.</p>}
      <ol class="levers">
        {a.levers.map((l) => (
          <li>
            <button disabled={busy || !l.flags} onClick={() => onPull(l)} data-lever={l.flags}>
              <span class="lever-name">{l.name}</span>
              <span class="lever-saving">
                −<Bytes n={l.saving_bytes} field="saving_bytes" />
                {l.of !== 'allocated' && <span class="muted"> {l.of}</span>}
              </span>
              <span class="lever-cost muted">{l.cost}</span>
              <span class="lever-fits">{a.fits === false && l.fits !== null && <Fits ok={l.fits} />}</span>
              <code class="lever-flags">{l.flags || l.lines.join('; ')}</code>
            </button>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Fits({ ok }: { ok: boolean }) {
  return ok ? <span class="passes">then it fits</span> : <span class="muted">not enough alone</span>;
}

// Trail is the way back: the plans that led here.
export function Trail({ onGo, astray }: { onGo: (i: number) => void; astray: boolean }) {
  const list = trail.value;
  if (list.length === 0) return null;
  const back = astray ? at.value : at.value - 1;
  return (
    <nav class="trail" aria-label="Plans made">
      <button onClick={() => onGo(back)} disabled={back < 0} title="Back to the plan before (u)" data-act="undo">
        ↶ Undo
      </button>
      <ol>
        {list.map((s, i) => (
          <li>
            <button
              class="trail-step"
              aria-current={i === at.value && !astray ? 'step' : undefined}
              onClick={() => onGo(i)}
              data-step={i}
              title={`${s.label}: ${size(s.answer.peak_reserved_bytes)} reserved`}
            >
              <span class={s.answer.fits === null ? 'muted' : s.answer.fits ? 'passes' : 'fails'} aria-hidden="true">
                {s.answer.fits === null ? '·' : s.answer.fits ? '✓' : '✕'}
              </span>
              {s.answer.fits !== null && <span class="hidden">{s.answer.fits ? 'fits' : 'does not fit'}</span>}
              <span class="trail-label">{s.label}</span>
              <span class="num muted">{size(s.answer.peak_reserved_bytes)}</span>
            </button>
          </li>
        ))}
      </ol>
      {before.value && !astray && <span class="muted small-text trail-note">changes are against the plan before</span>}
    </nav>
  );
}
