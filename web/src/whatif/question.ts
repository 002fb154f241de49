// What is asked: the settings to try, under which limit and on which device. It
// stands in the address once it was asked.

import type { Change, Params } from '../route';

export interface Question {
  sets: readonly string[];
  limit: string; // empty: as the recording shows
  memory: string;
  skip: boolean; // leave failing requests out and go on
  tune: number | null; // seconds to search for; the settings do not matter then
}

// Settings are written with commas and colons, so that this is free; what
// somebody types may have it all the same.
const between = ';';

function hide(conf: string): string {
  const code = (c: string) => '%' + c.charCodeAt(0).toString(16).padStart(2, '0');
  const own = conf === 'none' || conf === 'defaults'; // words of the address
  return own ? code(conf[0]!) + conf.slice(1) : conf.replace(/[%;]/g, code);
}

function unhide(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}

// The presets are lines that PyTorch's documentation, its error message and
// issues of well-known programs advise.
export const presets: readonly { conf: string; text: string; title: string }[] = [
  {
    conf: 'expandable_segments:True',
    text: 'expandable segments',
    title: "What PyTorch's own message advises: segments grow instead of being many",
  },
  { conf: 'max_split_size_mb:128', text: 'max split 128', title: 'Blocks above 128 MiB are not split' },
  { conf: 'max_split_size_mb:512', text: 'max split 512', title: 'Blocks above 512 MiB are not split' },
  { conf: 'roundup_power2_divisions:4', text: 'round up ÷4', title: 'Sizes are rounded up to a quarter of a power of two' },
  { conf: 'garbage_collection_threshold:0.8', text: 'gc 0.8', title: 'Cached segments are released above 80 % of the limit' },
  {
    conf: 'garbage_collection_threshold:0.6,max_split_size_mb:128',
    text: 'gc 0.6, max split 128',
    title: 'A pair that guides for image models advise',
  },
  { conf: '', text: 'defaults', title: 'Nothing set' },
];

// Where a bound comes from, in words.
export const sources: Readonly<Record<string, string>> = { given: 'as given', recorded: 'as recorded', inferred: 'inferred' };

// The first question offers five.
export const usual: readonly string[] = presets.slice(0, 5).map((p) => p.conf);

export const budgets = [5, 10, 30, 60, 300];

export function confText(conf: string): string {
  return conf === '' ? "PyTorch's defaults" : conf;
}

// The longest search that the server makes, in seconds.
const longest = 600;

// wrongly says what is wrong with a question in the address; null if nothing is.
export function wrongly(p: Params): string | null {
  const tune = p['tune'];
  if (tune === undefined || (Number(tune) > 0 && Number(tune) <= longest)) return null;
  return `tune is "${tune}" in the address: write how many seconds to search, up to ${longest}.`;
}

// asked reads the question off the address; null if none was asked.
export function asked(p: Params): Question | null {
  if (wrongly(p) !== null) return null;
  const tune = p['tune'] === undefined ? null : Number(p['tune']);
  if (p['sets'] === undefined && tune === null) return null;
  return {
    sets:
      p['sets'] === undefined || p['sets'] === 'none' ? [] : p['sets'].split(between).map((s) => (s === 'defaults' ? '' : unhide(s))),
    limit: p['limit'] ?? '',
    memory: p['memory'] ?? '',
    skip: p['oom'] === 'skip',
    tune,
  };
}

// inAddress writes a question so that asked reads it.
export function inAddress(q: Question): Change {
  return {
    sets: q.tune !== null ? null : q.sets.length === 0 ? 'none' : q.sets.map((s) => hide(s) || 'defaults').join(between),
    limit: q.limit || null,
    memory: q.memory || null,
    oom: q.skip ? 'skip' : null,
    tune: q.tune,
  };
}

// asInAddress is a question as the address will have it, so that it is not asked
// twice.
export function asInAddress(q: Question): Question {
  const written = Object.entries(inAddress(q)).filter(([, v]) => v !== null);
  return asked(Object.fromEntries(written.map(([key, v]) => [key, String(v)]))) ?? q;
}

// variantOf is how the segments of a result are addressed.
export function variantOf(r: { settings: string; recorded: boolean }, q: Question): Change {
  return {
    variant: r.recorded ? 'recorded' : r.settings || 'defaults',
    vlimit: q.limit || null,
    vmemory: q.memory || null,
  };
}
