// What is asked: the settings to try, under which limit and on which device. It
// stands in the address once it was asked.

import type { Change, Params } from '../route';
import type { Goal } from '../types/tune.gen';

export interface Question {
  sets: readonly string[];
  limit: string; // empty: as the recording shows
  memory: string;
  skip: boolean; // leave failing requests out and go on
}

// Search is what tune is asked.
export interface Search {
  limit: string;
  memory: string;
  seconds: number;
  goal: Goal | ''; // empty: as suits the limit
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

// Other allocators, which may stand among the settings; the server knows more.
export const strategies = ['best-fit', 'buddy', 'slab', 'binning', 'bfc', 'bfc-growth', 'async:max', 'static-plan'];

// Where a bound comes from, in words.
export const sources: Readonly<Record<string, string>> = { given: 'as given', recorded: 'as recorded', inferred: 'inferred' };

// The standard settings, which are tried if nobody asks for others.
export const usual: readonly string[] = presets.slice(0, 5).map((p) => p.conf);

export const budgets = [5, 10, 30, 60, 300];

export const goals: Readonly<Record<Goal | '', string>> = {
  '': 'what suits the limit',
  reserved: 'less reserved memory',
  limit: 'a smaller limit',
  calls: 'fewer driver calls',
};

function goalOf(text: string | undefined): Goal | '' {
  return text !== undefined && text in goals ? (text as Goal | '') : '';
}

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

// Told is what the address asks. Without settings those that a search finds are
// tried, or the standard ones.
export interface Told {
  sets: readonly string[] | null;
  limit: string;
  memory: string;
  skip: boolean;
  seconds: number | null; // to search for
  goal: Goal | '';
}

export function told(p: Params): Told {
  const sets = p['sets'];
  return {
    sets: sets === undefined ? null : sets === 'none' ? [] : sets.split(between).map((s) => (s === 'defaults' ? '' : unhide(s))),
    limit: p['limit'] ?? '',
    memory: p['memory'] ?? '',
    skip: p['oom'] === 'skip',
    seconds: p['tune'] === undefined || wrongly(p) !== null ? null : Number(p['tune']),
    goal: goalOf(p['goal']),
  };
}

// inAddress writes a question so that told reads it.
export function inAddress(q: Question): Change {
  return {
    sets: q.sets.length === 0 ? 'none' : q.sets.map((s) => hide(s) || 'defaults').join(between),
    limit: q.limit || null,
    memory: q.memory || null,
    oom: q.skip ? 'skip' : null,
  };
}

export function searchInAddress(s: Search | null): Change {
  return s ? { sets: null, limit: s.limit || null, memory: s.memory || null, tune: s.seconds, goal: s.goal || null } : { tune: null, goal: null };
}

function bound(name: string, text: string): string {
  return `${name} ${text || 'as recorded'}`;
}

// changes says what a question has that another has not, in a few words.
export function changes(from: Question, to: Question): string {
  const gone = to.sets.filter((s) => !from.sets.includes(s));
  const added = from.sets.filter((s) => !to.sets.includes(s));
  const out: string[] = [];
  if (gone.length > 0) out.push(listed(gone));
  if (added.length > 0 && gone.length === 0) out.push(`all but ${listed(added)}`);
  if (from.limit !== to.limit) out.push(bound('limit', to.limit));
  if (from.memory !== to.memory) out.push(bound('device', to.memory));
  if (from.skip !== to.skip) out.push(to.skip ? 'failures left out' : 'an end at a failure');
  return out.join(', ') || 'other settings';
}

function listed(sets: readonly string[]): string {
  return sets.slice(0, 2).map(confText).join('; ') + (sets.length > 2 ? ` and ${sets.length - 2} more` : '');
}

export function searchChanges(from: Search, to: Search): string {
  const out: string[] = [];
  if (from.limit !== to.limit) out.push(bound('limit', to.limit));
  if (from.memory !== to.memory) out.push(bound('device', to.memory));
  if (from.goal !== to.goal) out.push(goals[to.goal]);
  if (from.seconds !== to.seconds) out.push(`at most ${to.seconds} s`);
  return out.join(', ');
}

// variantOf is how the segments of a result are addressed.
export function variantOf(r: { settings: string; recorded: boolean }, q: Question): Change {
  return {
    variant: r.recorded ? 'recorded' : r.settings || 'defaults',
    vlimit: q.limit || null,
    vmemory: q.memory || null,
  };
}
