// The filtered list as a file. With a server the browser saves what the server
// streams; without one the file is made here.

import { useSignal } from '@preact/signals';
import { address, ask, words } from '../api';
import { run } from '../route';
import { current, say } from '../state';
import { offline } from '../transport';

export function Export({ filter }: { filter: Record<string, string> }) {
  const busy = useSignal(false);
  const save = async (format: string) => {
    busy.value = true;
    try {
      const reply = await ask('export', { run: run.value, format, ...filter }, {});
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await reply.blob());
      link.download = `${(current.value?.label ?? 'run').replace(/\.pickle.*$/, '')}-events.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (err) {
      say(words(err));
    }
    busy.value = false;
  };
  return (
    <span class="together" role="group" aria-label="Save the events of the list">
      {['csv', 'parquet'].map((format) => {
        const text = format === 'csv' ? 'CSV' : 'Parquet';
        const title = `Save the events that match as ${text}, frees not folded`;
        return offline ? (
          <button class="small" disabled={busy.value} onClick={() => void save(format)} title={title} data-export={format}>
            {text}
          </button>
        ) : (
          <a class="button small" href={address('export', { run: run.value, format, ...filter })} download title={title} data-export={format}>
            {text}
          </a>
        );
      })}
    </span>
  );
}
