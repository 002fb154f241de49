// Questions that take a while: the answer comes in lines, each with one member
// that says what it is, and can be stopped.

import { aborted, ask, words, type Query } from './api';
import { silence } from './transport';
import type { Progress } from './types/view.gen';

// Going is how far work is. Waiting: something else takes all cores.
export interface Going {
  progress: Progress | null;
  waiting: boolean;
  stopping: boolean;
}

export const begun: Going = { progress: null, waiting: false, stopping: false };

export interface Ears {
  going: (change: Partial<Going>) => void;
  document: (name: string, value: unknown) => void;
  // The end: an error in words, or null; stopped: there is no answer because
  // somebody stopped it.
  over: (error: string | null, stopped: boolean) => void;
}

export class Work {
  private id: number | null = null;
  private wanted = false; // to stop, before the number is known
  private readonly gone = new AbortController();

  // A body is for questions that do not fit an address.
  constructor(path: string, query: Query, ears: Ears, body?: unknown) {
    const init = body === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    void this.run(path, query, ears, init);
  }

  // stop has the server end the work and send what it knows.
  stop(): void {
    this.wanted = true;
    if (this.id !== null) void ask('work', { work: this.id }, { method: 'DELETE' }).catch(() => this.drop());
  }

  // drop is for an answer that nobody wants any more.
  drop(): void {
    this.gone.abort();
  }

  private async run(path: string, query: Query, ears: Ears, init: RequestInit): Promise<void> {
    let stopped = false;
    let ended = false;
    let error: string | null = null;
    try {
      const reply = await ask(path, { ...query, sites: 1, stream: 1 }, { ...init, signal: this.gone.signal });
      for await (const line of linesOf(reply.body!)) {
        const [name, value] = Object.entries(JSON.parse(line) as Record<string, unknown>)[0]!;
        switch (name) {
          case 'work':
            this.id = value as number;
            if (this.wanted) this.stop();
            break;
          case 'waiting':
            ears.going({ waiting: true });
            break;
          case 'progress':
            ears.going({ waiting: false, progress: value as Progress });
            break;
          case 'error':
            error = String(value);
            break;
          case 'stopped':
            stopped = true;
            break;
          case 'end':
            ended = true;
            break;
          default:
            ears.document(name, value);
        }
      }
      if (!ended) error = silence;
    } catch (err) {
      if (this.gone.signal.aborted || aborted(err)) return;
      error = words(err);
    }
    if (!this.gone.signal.aborted) ears.over(error, stopped);
  }
}

async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n');
    rest = parts.pop()!;
    yield* parts;
  }
}
