// Call sites, chosen and written as package timeline does it: the place of the
// allocation without what every stack has, and the line of the user's own
// program that led there. The browser tests hold the two side by side.

import type { Frame } from './types';

const compiled = /\.(cpp|cc|c|cu|h|hpp|cuh)$/;
const installed = /\/(site|dist)-packages\/|\/lib\/python3|\/inductor\/|\/torchinductor_|\/pytorch\/torch\/|^<|^torch\//;
const alwaysPlumbing = new Set(['_call_impl', '_wrapped_call_impl', 'decorate_context', '__torch_dispatch__']);
const sometimesPlumbing = new Set(['__call__', '_fn', 'inner']);
const plumbingFile = /torch\/(_ops|_compile)\.py$|\/torch\/_dynamo\//;
const plumbingStart =
  /^(torch::unwind|torch::CapturedTraceback|torch::cuda::\(anonymous namespace\)::gather|c10::cuda::CUDACachingAllocator)/;

export function native(f: Frame): boolean {
  if (f.filename.endsWith('.py')) return false;
  return compiled.test(f.filename) || f.filename === '' || f.filename === '??' || f.line === 0;
}

// own tells frames of the user's own program from those of libraries.
export function own(f: Frame): boolean {
  return !native(f) && !installed.test(f.filename);
}

function plumbing(f: Frame): boolean {
  if (alwaysPlumbing.has(f.name)) return true;
  if (sometimesPlumbing.has(f.name)) return plumbingFile.test(f.filename);
  return plumbingStart.test(f.name);
}

const longFile = 36;

function place(f: Frame): string {
  if (native(f)) return shortNative(f.name);
  let file = f.filename.slice(f.filename.lastIndexOf('/') + 1);
  const letters = [...file];
  if (letters.length > longFile) file = `${letters.slice(0, longFile / 3).join('')}...${letters.slice(-longFile / 3).join('')}`;
  return `${file}:${f.line}`;
}

export function frameText(f: Frame): string {
  return native(f) ? shortNative(f.name) : `${place(f)} ${f.name}`;
}

export const noStack = '(no call stack)';

export function siteText(frames: readonly Frame[] | null): string {
  const first = frames?.[0];
  if (!frames || !first) return noStack;
  let inner: Frame | undefined;
  let user: Frame | undefined;
  for (const f of frames) {
    if (!inner && !plumbing(f)) inner = f;
    if (own(f)) {
      user = f;
      break;
    }
  }
  const text = frameText(inner ?? first);
  return user && frameText(user) !== text ? `${text} < ${frameText(user)}` : text;
}

// shortNative leaves out the arguments of a C++ function and of its templates.
function shortNative(name: string): string {
  let out = '';
  let depth = 0;
  for (const c of name.replaceAll('(anonymous namespace)', '{anonymous}')) {
    if (c === '<') depth++;
    else if (c === '>' && depth > 0) depth--;
    else if (c === '(' && depth === 0) break;
    else if (depth === 0) out += c;
  }
  const blank = out.lastIndexOf(' ');
  return blank >= 0 && !out.includes('operator') ? out.slice(blank + 1) : out;
}
