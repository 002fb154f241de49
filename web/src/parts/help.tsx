// The sheet of keys behind ?.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { groups, sign } from '../keys';

export const helpShown = signal(false);

export function HelpDialog() {
  const ref = useRef<HTMLDialogElement>(null);
  const shown = helpShown.value;
  useEffect(() => {
    const d = ref.current!;
    if (shown && !d.open) d.showModal();
    if (!shown && d.open) d.close();
  }, [shown]);
  return (
    <dialog ref={ref} class="sheet" aria-label="Keys" onClose={() => (helpShown.value = false)} onClick={(e) => e.target === e.currentTarget && e.currentTarget.close()}>
      <h2>
        Keys
        <button class="plain aside" onClick={() => (helpShown.value = false)} aria-label="Close">
          ✕
        </button>
      </h2>
      {shown && (
        <div class="keys">
          {groups.value.map((g) => (
            <section>
              <h3>{g.title}</h3>
              <dl>
                {g.bindings.map((b) => (
                  <div>
                    <dt>{b.shown ? <kbd>{b.shown}</kbd> : b.keys.map((k) => <kbd>{sign(k)}</kbd>)}</dt>
                    <dd>{b.text}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      )}
    </dialog>
  );
}
