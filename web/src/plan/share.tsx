// Sharing: the question as a link, and the way back.

import { signal, useSignal } from '@preact/signals';
import { Copy } from '../parts/basic';
import { Sheet } from '../parts/sheet';
import { say } from '../state';
import { asked, link, paramsOf, type Question } from './question';
import type { Offer } from './types';

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
  const address = q ? link(q, o) : '';
  const open = () => {
    const params = paramsOf(pasted.value);
    const found = params && asked({ ...params }, o);
    if (!found) return say('This is no link to a plan: it has #//plan? in it.');
    if (found.error !== null) return say(found.error);
    shareShown.value = false;
    onOpen(found.question);
  };
  return (
    <div class="share">
      {q ? (
        <>
          <p>
            The link holds the model and all options, but no recording. On another machine run <code>ashlar view</code> and paste it
            below: all but what follows the # is this machine's own.
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
          placeholder="http://127.0.0.1:…/#//plan?v=1&shape=…"
          value={pasted.value}
          spellcheck={false}
          onInput={(e) => (pasted.value = e.currentTarget.value)}
        />
        <button type="submit" data-act="open">
          Open
        </button>
      </form>
    </div>
  );
}
