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
  const open = shown.value;
  useEffect(() => {
    const d = ref.current!;
    if (open && !d.open) d.showModal();
    if (!open && d.open) d.close();
  }, [open]);
  return (
    <dialog
      ref={ref}
      class={kind}
      aria-label={title}
      onClose={(e) => {
        // The event comes later: it may be open again.
        if (!e.currentTarget.open) shown.value = false;
      }}
      onClick={(e) => outside(e) && (shown.value = false)}
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

// outside reports whether a click went past the sheet.
function outside(e: MouseEvent & { currentTarget: Element }): boolean {
  const r = e.currentTarget.getBoundingClientRect();
  return e.target === e.currentTarget && (e.clientX < r.left || e.clientX > r.right || e.clientY < r.top || e.clientY > r.bottom);
}
