// Sharing: the experiment as a link and as lines, and the way back.

import { signal, useSignal } from '@preact/signals';
import { Copy, Trouble } from '../parts/basic';
import { Sheet } from '../parts/sheet';
import { answer, lines, link, read } from './game';

export const shareShown = signal(false);

export function ShareDialog() {
  return (
    <Sheet title="Share" shown={shareShown}>
      <Share />
    </Sheet>
  );
}

function Share() {
  const pasted = useSignal('');
  const problem = useSignal<string | null>(null);
  const text = (lines.value ?? []).join('\n');
  const address = link();
  return (
    <div class="share">
      <p>
        The link holds the whole experiment and the step, and nothing of this machine. Run <code>ashlar view</code> anywhere and paste it
        below, or put it behind the address that it prints.
      </p>
      <div class="export">
        <code data-field="link">{address.length > 300 ? address.slice(0, 300) + '…' : address}</code>
        <Copy text={address} label="Copy the link" />
      </div>
      <h3>
        The steps as text <Copy text={text} label="Copy the text" />
      </h3>
      <pre class="mono lines" tabIndex={0} data-field="lines">
        {text}
      </pre>
      {answer.value && answer.value.steps.length === 0 && <p class="muted">There are no steps yet.</p>}
      <h3>Open a link, or lines</h3>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void read(pasted.value).then((wrong) => {
            problem.value = wrong;
            if (wrong === null) shareShown.value = false;
          });
        }}
      >
        <textarea
          name="paste"
          rows={5}
          class="mono"
          aria-label="A link or lines"
          placeholder={'alloc a 4MiB\nalloc b 12MiB stream=1\nfree a'}
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
