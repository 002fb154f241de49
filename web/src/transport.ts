// The way to the server. That of ashlar view is behind HTTP, beside the page. A
// page that needs no server (ashlar report --interactive) has it inside: a worker
// runs it, and questions and answers are messages.

import type { Begin, Said } from './worker';

type Transport = (path: string, init: RequestInit) => Promise<Response>;

// offline says whether the server is inside the page.
export const offline = document.getElementById('engine') !== null;

// silence is what to say if no answer comes.
export const silence = offline
  ? 'The part of this page that computes has stopped, perhaps for lack of memory. Reload the page; for large files use ashlar view.'
  : 'ashlar does not answer. Was it stopped? Start it again in the terminal and open the address it prints.';

export const request: Transport = offline ? inside() : (path, init) => fetch(path, init);

// take reads a block of data in the document and removes it, to save memory.
function take(element: HTMLElement): string {
  const text = element.textContent!;
  element.remove();
  return text;
}

function inside(): Transport {
  const code = URL.createObjectURL(new Blob([take(document.getElementById('worker')!)], { type: 'text/javascript' }));
  const worker = new Worker(code);
  const begin: Begin = {
    engine: take(document.getElementById('engine')!),
    files: [...document.querySelectorAll<HTMLElement>('script[data-name]')].map((e) => ({ name: e.dataset.name!, data: take(e) })),
  };
  worker.postMessage(begin);
  const open = new Map<number, (said: Said) => void>();
  let last = 0;
  let dead = false;
  const die = () => {
    dead = true;
    for (const hear of open.values()) hear({ id: 0, end: true });
  };
  worker.onerror = die;
  worker.onmessage = (e: MessageEvent<Said | null>) => (e.data ? open.get(e.data.id)?.(e.data) : die());

  return async (path, init) => {
    const id = ++last;
    const { signal, method = 'GET', headers } = init;
    const body = init.body ? await new Response(init.body).arrayBuffer() : null;
    signal?.throwIfAborted();
    if (dead) throw new Error(silence);
    return new Promise((resolve, reject) => {
      let out: ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({ start: (c) => void (out = c), cancel: () => worker.postMessage({ id, cancel: true }) });
      let headed = false;
      const over = (err?: unknown) => {
        open.delete(id);
        signal?.removeEventListener('abort', abort);
        if (err === undefined) out.close();
        else if (headed) out.error(err);
        else reject(err);
      };
      const abort = () => {
        worker.postMessage({ id, cancel: true });
        over(signal!.reason);
      };
      signal?.addEventListener('abort', abort);
      open.set(id, (said) => {
        if ('status' in said) {
          headed = true;
          resolve(new Response(stream, { status: said.status, headers: { 'Content-Type': said.type } }));
        } else if ('chunk' in said) out.enqueue(said.chunk);
        else over(headed && !dead ? undefined : new Error(silence));
      });
      const type = new Headers(headers).get('Content-Type') ?? '';
      worker.postMessage({ id, method, path: '/' + path, type, body }, body ? [body] : []);
    });
  };
}
