// Forms that are answered as they are filled in, and results that are never
// taken for those of other inputs: a result is for what the form has, or it is
// greyed and says what it is for.

import type { ComponentChildren } from 'preact';

// How long a form rests before it is asked, in milliseconds.
const pause = 350;

// Asking asks a form's question when the form rests. As soon as something is
// changed the question before it is withdrawn, from the server too.
export class Asking {
  private timer = 0;

  constructor(
    private readonly ask: () => void,
    private readonly withdraw: () => void,
  ) {}

  changed(): void {
    this.cancel();
    this.timer = setTimeout(() => this.now(), pause);
  }

  // now asks without waiting.
  now(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.ask();
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.withdraw();
  }

  // rests reports whether all that was changed is asked.
  rests(): boolean {
    return this.timer === 0;
  }
}

// Result shows what was answered. Stale is what it is for if that is not what the
// form has; why says what becomes of the form's question. The note covers a bit of
// the result, so that nothing moves while somebody types.
export function Result({ stale, why, name, children }: { stale: string | null; why: ComponentChildren; name: string; children: ComponentChildren }) {
  return (
    <div class={stale === null ? 'result' : 'result stale'} data-result={name} aria-busy={stale !== null}>
      {stale !== null && (
        <div class="stale-note" role="status">
          <p>
            <strong data-field="stale">for {stale}</strong> <span>{why}</span>
          </p>
        </div>
      )}
      {children}
    </div>
  );
}
