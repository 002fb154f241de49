// Sharing: the question as a link, and the way back.

import { signal, useSignal } from '@preact/signals';
import { Copy, Trouble } from '../parts/basic';
import { Sheet } from '../parts/sheet';
import { asked, link, paramsOf, type Question } from './question';
import type { Offer } from '../types/view.gen';

export const shareShown = signal(false);

export function ShareDialog({ q, o, onOpen }: { q: Question | null; o: Offer; onOpen: (q: Question) => void }) {
  return (
    <Sheet title="Share" shown={shareShown}>
      <Share q={q} o={o} onOpen={onOpen} />
    </Sheet>
  );
}

function Share({ q, o, onOpen }: { q: Question | null; o: Offer; onOpen: (q: Question) => void }) {
  const pasted = useSignal('');
  const problem = useSignal<string | null>(null);
  const address = q ? link(q, o) : '';
  const open = () => {
    const params = paramsOf(pasted.value);
    const found = params && asked({ ...params }, o);
    problem.value = found ? found.error : 'This is no link to a plan: one has #//plan? in it.';
    if (!found || found.error !== null) return;
    shareShown.value = false;
    onOpen(found.question);
  };
  return (
    <div class="share">
      {q ? (
        <>
          <p>
            The link holds the model and all options, but no recording, and nothing of this machine. Run <code>ashlar view</code> anywhere
            and paste it below, or put it behind the address that it prints.
          </p>
          <div class="export">
            <code data-field="link">{address.length > 300 ? address.slice(0, 300) + '…' : address}</code>
            <Copy text={address} label="Copy the link" />
          </div>
        </>
      ) : (
        <p class="muted">There is nothing to share before something was planned.</p>
      )}
      <h3>Open a link</h3>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          open();
        }}
      >
        <textarea
          name="paste"
          rows={3}
          class="mono"
          aria-label="A link to a plan"
          placeholder="#//plan?v=1&shape=…"
          value={pasted.value}
          spellcheck={false}
          onInput={(e) => {
            pasted.value = e.currentTarget.value;
            problem.value = null;
          }}
        />
        <button type="submit" data-act="open">
          Open
        </button>
      </form>
      {problem.value && <Trouble>{problem.value}</Trouble>}
    </div>
  );
}
