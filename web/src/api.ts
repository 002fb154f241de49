// Requests to the server, which is at api/ beside the page, or inside it.

import { offline, request, silence } from './transport';
import type { Document as Explain } from './types/explain.gen';

// Failure is an error answer, in words for the reader.
export class Failure extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>;

// address writes a path with its parameters; empty ones are left out. A list is
// a parameter that is given several times, and may be empty texts.
export function address(path: string, query: Query = {}): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) q.append(key, String(one));
    else if (value !== null && value !== undefined && value !== '') q.set(key, String(value));
  }
  const text = q.toString();
  return `api/${path}${text && '?' + text}`;
}

export async function ask(path: string, query: Query, init: RequestInit): Promise<Response> {
  let reply: Response;
  try {
    reply = await request(address(path, query), init);
  } catch (err) {
    if (aborted(err)) throw err;
    throw new Failure(silence, 0);
  }
  if (!reply.ok) throw new Failure(await reason(reply), reply.status);
  return reply;
}

async function reason(reply: Response): Promise<string> {
  try {
    const said = (await reply.json()) as { error?: string };
    if (said.error) return said.error;
  } catch {
    // Not a document; the status has to do.
  }
  return `ashlar view answered ${reply.status} ${reply.statusText}`.trim();
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const reply = await ask(path, query, signal ? { signal } : {});
  return (await reply.json()) as T;
}

// post asks a question that does not fit an address.
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const reply = await ask(path, {}, signal ? { ...init, signal } : init);
  return (await reply.json()) as T;
}

export async function getBinary(path: string, query: Query, signal?: AbortSignal): Promise<ArrayBuffer> {
  const reply = await ask(path, query, signal ? { signal } : {});
  return reply.arrayBuffer();
}

export async function forget(run: number): Promise<void> {
  await ask('runs', { run }, { method: 'DELETE' });
}

// Taken is what became of a file: runs, or the explanation of a text.
export interface Taken {
  runs: number[];
  explain?: Explain;
}

// send uploads a file and reports progress. It uses XMLHttpRequest because fetch
// reports none.
export async function send(file: File, progress: (part: number) => void): Promise<Taken> {
  if (offline) {
    progress(1);
    const reply = await ask('runs', { name: file.name }, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file });
    return (await reply.json()) as Taken;
  }
  return new Promise((resolve, reject) => {
    const x = new XMLHttpRequest();
    x.open('POST', address('runs', { name: file.name }));
    x.setRequestHeader('Content-Type', 'application/octet-stream');
    x.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
    x.onerror = () => reject(new Failure(`${file.name} could not be sent to ashlar view: was it stopped?`, 0));
    x.onload = () => {
      let said: Partial<Taken> & { error?: string } = {};
      try {
        said = JSON.parse(x.responseText);
      } catch {
        // Not a document; the status has to do.
      }
      if (x.status === 200 && said.runs) resolve(said as Taken);
      else reject(new Failure(said.error ?? `${file.name}: ashlar view answered ${x.status} ${x.statusText}`, x.status));
    };
    x.send(file);
  });
}

export function aborted(err: unknown): boolean {
  return err instanceof DOMException && err.name === 'AbortError';
}

export function words(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

// Follower asks for what is wanted now and, when the answer has come, for what
// is wanted by then. So it keeps up with something that changes faster than
// answers come.
export class Follower<Q, T> {
  private wanted: Q | null = null;
  private stop: AbortController | null = null;

  constructor(
    private readonly ask: (q: Q, signal: AbortSignal) => Promise<T>,
    private readonly got: (answer: T, q: Q) => void,
    private readonly failed: (text: string) => void,
  ) {}

  want(q: Q): void {
    this.wanted = q;
    if (!this.stop) void this.run();
  }

  private async run(): Promise<void> {
    const stop = new AbortController();
    this.stop = stop;
    for (let asked: Q | null = null; this.wanted !== null && this.wanted !== asked; ) {
      const q: Q = this.wanted;
      asked = q;
      try {
        const answer = await this.ask(q, stop.signal);
        if (stop.signal.aborted) return;
        this.got(answer, q);
      } catch (err) {
        if (stop.signal.aborted) return;
        this.failed(words(err));
      }
    }
    this.stop = null;
  }

  cancel(): void {
    this.wanted = null;
    this.stop?.abort();
    this.stop = null;
  }
}
