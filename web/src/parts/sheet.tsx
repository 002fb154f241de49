// A sheet over the page: a modal dialog that a signal opens and closes. The browser
// keeps the focus inside of it and closes it with Escape.

import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Sheet({
  title,
  shown,
  children,
  kind = 'sheet',
}: {
  title: string;
  shown: Signal<boolean>;
  children: ComponentChildren;
  kind?: 'sheet' | 'side-sheet';
}) {
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
      class={kind}
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
