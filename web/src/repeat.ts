// Questions that are asked again and again.

import { aborted, words } from './api';

// repeat calls f, waits, and calls it again, until the function that it returns is
// called. A page that nobody sees asks for nothing.
export function repeat(f: (stop: AbortSignal) => Promise<void>, wait: () => number, failed: (text: string | null) => void): () => void {
  const stop = new AbortController();
  let timer = 0;
  const turn = async () => {
    clearTimeout(timer);
    if (document.hidden || stop.signal.aborted) return;
    const began = Date.now();
    try {
      await f(stop.signal);
      failed(null);
    } catch (err) {
      if (!aborted(err)) failed(words(err));
    }
    if (!stop.signal.aborted) timer = setTimeout(turn, Math.max(100, wait() - (Date.now() - began)));
  };
  const back = () => void (document.hidden || turn());
  document.addEventListener('visibilitychange', back);
  void turn();
  return () => {
    stop.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', back);
  };
}
