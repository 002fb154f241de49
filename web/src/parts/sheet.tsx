// A sheet over the page: a modal dialog that a signal opens and closes.

import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Sheet({ title, shown, children }: { title: string; shown: Signal<boolean>; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const own = useRef(false); // we closed it; the event for that comes later
  const open = shown.value;
  useEffect(() => {
    const d = ref.current!;
    if (open && !d.open) d.showModal();
    if (!open && d.open) {
      own.current = true;
      d.close();
    }
  }, [open]);
  return (
    <dialog
      ref={ref}
      class="sheet"
      aria-label={title}
      onClose={() => {
        if (!own.current) shown.value = false;
        own.current = false;
      }}
      onClick={(e) => e.target === e.currentTarget && (shown.value = false)}
    >
      <h2>
        {title}
        <button class="plain aside" onClick={() => (shown.value = false)} aria-label="Close">
          ✕
        </button>
      </h2>
      {open && children}
    </dialog>
  );
}
