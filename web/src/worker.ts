// The worker of a page that needs no server: it runs the server of ashlar view,
// compiled to WebAssembly (cmd/ashlar-wasm), and carries messages between it and
// the page (transport.ts). Go's own wasm_exec.js comes before this script.

// Begin is the first message: what the page holds, as Go's encoding/ascii85 has
// it, but with v for <, which must not be in a document.
export interface Begin {
  engine: string; // compressed
  files: { name: string; data: string }[];
}

export interface Question {
  id: number;
  method: string;
  path: string;
  type: string;
  body: ArrayBuffer | null;
}

// Said is a part of an answer. Null instead of one: there will be no more.
export type Said =
  | { id: number; status: number; type: string }
  | { id: number; chunk: Uint8Array<ArrayBuffer> }
  | { id: number; end: true };

declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

const scope = self as unknown as {
  postMessage(message: Said | null, transfer?: Transferable[]): void;
  onmessage: (e: MessageEvent) => void;
  ashlar: object;
};

interface Engine {
  ask(id: number, method: string, path: string, type: string, body: Uint8Array | null): void;
  cancel(id: number): void;
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(Math.ceil(text.length / 5) * 4 + 4 * (text.split('z').length - 1));
  let n = 0;
  for (let i = 0; i < text.length; ) {
    if (text[i] === 'z') {
      n += 4;
      i++;
      continue;
    }
    const some = Math.min(5, text.length - i);
    let word = 0;
    for (let k = 0; k < 5; k++) {
      const c = k < some ? text.charCodeAt(i + k) : 117;
      word = word * 85 + (c === 118 ? 27 : c - 33);
    }
    out[n] = word / 0x1000000;
    out[n + 1] = word >>> 16;
    out[n + 2] = word >>> 8;
    out[n + 3] = word;
    n += some - 1;
    i += some;
  }
  return out.subarray(0, n);
}

async function begin(b: Begin): Promise<void> {
  const unpacked = new Blob([decode(b.engine)]).stream().pipeThrough(new DecompressionStream('gzip'));
  const go = new Go();
  const engine = await WebAssembly.instantiateStreaming(
    new Response(unpacked, { headers: { 'Content-Type': 'application/wasm' } }),
    go.importObject,
  );
  await new Promise<void>((ready) => {
    scope.ashlar = {
      files: b.files.map((f) => ({ name: f.name, data: decode(f.data) })),
      ready,
      head: (id: number, status: number, type: string) => scope.postMessage({ id, status, type }),
      chunk: (id: number, chunk: Uint8Array<ArrayBuffer>) => scope.postMessage({ id, chunk }, [chunk.buffer]),
      end: (id: number) => scope.postMessage({ id, end: true }),
    };
    void go.run(engine.instance).finally(() => scope.postMessage(null));
  });
}

let begun: Promise<void> | null = null;

scope.onmessage = async (e: MessageEvent<Begin | Question | { id: number; cancel: true }>) => {
  const m = e.data;
  if ('engine' in m) {
    begun = begin(m);
    begun.catch(() => scope.postMessage(null));
    return;
  }
  await begun;
  const engine = scope.ashlar as Engine;
  if ('cancel' in m) engine.cancel(m.id);
  else engine.ask(m.id, m.method, m.path, m.type, m.body && new Uint8Array(m.body));
};
