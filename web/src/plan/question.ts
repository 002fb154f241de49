// What is asked: a model and how it is run. It stands in the address once it was
// asked, so that a link asks it again.
//
//	v=1                  the version of questions
//	shape=NAME           a model that comes with the page, or
//	config=TEXT&name=F   somebody's own config.json
//	batch=8&dtype=bf16   options, by the names of the command's flags
//	gpu, limit, settings, head, max, against

import { number, type Change, type Params } from '../route';
import type { Document as Answer } from '../types/plan.gen';
import type { Kind, Offer, Option } from '../types/view.gen';

export interface Question {
  shape: string; // empty: config is somebody's own
  config: string;
  name: string; // of the file that the config was in
  options: Readonly<Record<string, string>>; // those that are set; a switch is "true"
  gpu: string;
  limit: string;
  settings: string;
  head: string;
  max: string; // batch or seq: the largest that fits
}

const texts = ['gpu', 'limit', 'settings', 'head', 'max'] as const;

// What else stands in the address of this screen: the moment and the block of
// the other screens, and the run that the plan is held against.
const besides = ['v', 'shape', 'config', 'name', 'against', 'event', 'range', 'alloc'];

// No link is longer; browsers stop at two million.
const longest = 900_000;

// first is what the form begins with.
export function first(o: Offer): Question {
  const shape = o.shapes.find((s) => s.name === 'llama-3.1-8b') ?? o.shapes[0]!;
  return { shape: shape.name, config: '', name: '', options: { ...shape.start }, gpu: 'h100', limit: '', settings: '', head: '', max: '' };
}

export type Asked = { question: Question; error: null } | { question: null; error: string } | null;

// asked reads the address. It may come from anybody, so it is checked before it
// is used; the server checks what the options mean.
export function asked(p: Params, o: Offer): Asked {
  if (p['shape'] === undefined && p['config'] === undefined) return null;
  const wrong = (error: string): Asked => ({ question: null, error });
  if (p['v'] !== String(o.version)) return wrong(`The link is of version ${p['v'] ?? 'none'}; this ashlar plans version ${o.version}.`);
  const names = o.options.map((x) => x.name);
  const options: Record<string, string> = {};
  for (const [key, value] of Object.entries(p)) {
    if (names.includes(key)) options[key] = value;
    else if (!besides.includes(key) && !texts.some((t) => t === key)) return wrong(`The link has "${key.slice(0, 40)}", which is no option of a plan.`);
    if (key !== 'config' && value.length > o.max_value_bytes) return wrong(`What the link has for ${key} is too long.`);
  }
  const shape = p['shape'] ?? '';
  const config = p['config'] ?? '';
  if (shape && !o.shapes.some((s) => s.name === shape)) return wrong(`There is no model "${shape.slice(0, 40)}" here: choose one, or paste its config.json.`);
  if (tooLong(config, o)) return wrong('The config in the link is too long: use ashlar plan on the command line.');
  const text = (key: (typeof texts)[number]) => p[key] ?? '';
  return {
    question: {
      shape,
      config: shape ? '' : config,
      name: shape ? '' : (p['name'] ?? ''),
      options,
      gpu: text('gpu'),
      limit: text('limit'),
      settings: text('settings'),
      head: text('head'),
      max: text('max'),
    },
    error: null,
  };
}

// tooLong reports whether a config is longer than the server or a link takes.
export function tooLong(config: string, o: Offer): boolean {
  return new Blob([config]).size > o.max_config_bytes || new URLSearchParams({ config }).toString().length > longest;
}

// inAddress writes a question so that asked reads it; what it does not say is
// taken away.
export function inAddress(q: Question, o: Offer): Change {
  const change: Change = { v: o.version, shape: q.shape || null, config: q.shape ? null : q.config, name: q.name || null };
  for (const x of o.options) change[x.name] = q.options[x.name] ?? null;
  for (const key of texts) change[key] = q[key] || null;
  return change;
}

// addressOf does so and takes away what is no part of a question.
export function addressOf(q: Question, o: Offer, now: Params): Change {
  const strange = Object.keys(now).filter((key) => !besides.includes(key));
  return { ...Object.fromEntries(strange.map((key) => [key, null])), ...inAddress(q, o) };
}

// link is a question as the end of an address: it works with any ashlar view and
// reveals nothing about this one.
export function link(q: Question, o: Offer): string {
  const p = new URLSearchParams();
  for (const [key, value] of Object.entries(inAddress(q, o))) if (value !== null && value !== '') p.set(key, String(value));
  return `#//plan?${p}`;
}

// paramsOf takes what a link to a plan says, from whatever machine; null if the
// text is none.
export function paramsOf(text: string): Record<string, string> | null {
  const begins = text.search(/#\/\d*\/plan\?/);
  if (begins < 0) return null;
  return Object.fromEntries(new URLSearchParams(text.slice(text.indexOf('?', begins) + 1).trim()));
}

export function same(a: Question, b: Question): boolean {
  return keyOf(a) === keyOf(b);
}

export function keyOf(q: Question): string {
  return JSON.stringify([q.shape, q.config, q.name, Object.entries(q.options).sort(), ...texts.map((t) => q[t])]);
}

// small writes a config without what is of no use in an address. What is no JSON
// stays as it is: the server says what is wrong with it.
export function small(config: string): string {
  try {
    return JSON.stringify(JSON.parse(config));
  } catch {
    return config.trim();
  }
}

export function configText(q: Question, o: Offer): string {
  const shape = o.shapes.find((s) => s.name === q.shape);
  return shape ? JSON.stringify(shape.config) : q.config;
}

// pretty is a config as people read it.
export function pretty(config: string): string {
  try {
    return JSON.stringify(JSON.parse(config), null, 2);
  } catch {
    return config;
  }
}

export function fileName(q: Question): string {
  return q.shape ? `${q.shape}.json` : q.name || 'config.json';
}

// modeOf is what is planned: a model that is to generate tokens generates.
export function modeOf(q: Question): string {
  return q.options['mode'] || (q.options['generate'] ? 'generate' : 'train');
}

// kindOf is the kind of run that a question is about: the one with the most of
// its own options in it.
export function kindOf(q: Question, o: Offer): Kind {
  const has = ([name, value]: [string, string]) => (name === 'mode' ? modeOf(q) === value : !!q.options[name]);
  const fit = o.kinds.filter((k) => k.why === '' && Object.entries(k.set).every(has));
  return fit.reduce((best, k) => (Object.keys(k.set).length > Object.keys(best.set).length ? k : best), fit[0]!);
}

// ofKind makes a question one about another kind of run.
export function ofKind(q: Question, kind: Kind, o: Offer): Question {
  const options: Record<string, string> = { ...q.options };
  for (const k of o.kinds) for (const name of Object.keys(k.set)) delete options[name];
  delete options['generate']; // it would say which kind by itself
  return { ...q, options: { ...options, ...kind.set } };
}

// shownOptions are those that a question of this kind may have.
export function shownOptions(q: Question, o: Offer): Option[] {
  const [mode, kind] = [modeOf(q), kindOf(q, o)];
  const others = o.kinds.flatMap((k) => k.own).filter((name) => !kind.own.includes(name));
  return o.options.filter((x) => (x.mode === '' || x.mode === mode) && !others.includes(x.name));
}

// fitting leaves out what the form does not show.
export function fitting(q: Question, o: Offer): Question {
  const mode = modeOf(q);
  const shown = shownOptions(q, o);
  const options: Record<string, string> = {};
  for (const x of shown) {
    const value = q.options[x.name]?.trim();
    if (value) options[x.name] = value;
  }
  if (mode === 'train') delete options['mode']; // it is what is planned anyway
  return { ...q, config: q.shape ? '' : small(q.config), options, gpu: q.gpu.trim(), limit: q.limit.trim(), settings: q.settings.trim() };
}

function withOption(options: Readonly<Record<string, string>>, name: string, value: string): Record<string, string> {
  const out = { ...options, [name]: value };
  if (value === '' || value === 'false') delete out[name];
  return out;
}

export function set(q: Question, name: string, value: string): Question {
  return { ...q, options: withOption(q.options, name, value) };
}

// withFlags applies what a lever says. Settings of the allocator are one flag,
// the last, whatever is written behind it.
export function withFlags(q: Question, flags: string): Question {
  const conf = '--settings ';
  const at = ` ${flags}`.indexOf(` ${conf}`);
  if (at >= 0) {
    const rest = at > 0 ? withFlags(q, flags.slice(0, at - 1)) : q;
    return { ...rest, settings: flags.slice(at + conf.length) };
  }
  let options: Record<string, string> = { ...q.options };
  const words = flags.split(' ');
  for (let i = 0; i < words.length; i++) {
    const [name = '', given] = words[i]!.slice(2).split('=', 2);
    const next = words[i + 1];
    if (given !== undefined) options = withOption(options, name, given);
    else if (next !== undefined && !next.startsWith('--')) {
      options = withOption(options, name, next);
      i++;
    } else options = withOption(options, name, 'true');
  }
  return { ...q, options };
}

// settled is a question whose searches are over: what they found is asked for.
export function settled(q: Question, a: Answer): Question {
  if (a.max) return { ...set(q, a.max.of, String(a.max.value || a.max.next)), max: '' };
  if (a.recompute) return withFlags(q, a.recompute.best.flags);
  return q;
}

// quoted writes a word so that a shell takes it as it is: what stands in a link
// may be anybody's.
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

// command is the same question for the command line, or that about a ledger.
export function command(q: Question, o: Offer, more: readonly string[], ledger?: string): string {
  const file = ledger ?? fileName(q);
  const words = ['ashlar', ledger === undefined ? 'plan' : 'dry', file.startsWith('-') ? `./${file}` : file]; // it is no flag
  for (const x of ledger === undefined ? o.options : []) {
    const value = q.options[x.name];
    if (!value || x.name === q.max) continue; // what is searched for is not given
    words.push(`--${x.name}`);
    if (x.value !== '') words.push(value);
  }
  for (const key of ledger === undefined ? texts : texts.slice(0, 3)) if (q[key]) words.push(`--${key}`, q[key]);
  return [...words, ...more].map(quoted).join(' ');
}

// changes says how a question differs from another, in a few words.
export function changes(from: Question | null, to: Question): string {
  const model = to.shape || to.name || 'own config';
  if (!from) return [model, ...Object.entries(to.options).map(([k, v]) => said(k, v)), to.gpu || to.limit].filter(Boolean).join(', ');
  const out: string[] = [];
  if (from.shape !== to.shape || from.config !== to.config) out.push(model);
  for (const name of new Set([...Object.keys(from.options), ...Object.keys(to.options)])) {
    const value = to.options[name];
    if (from.options[name] !== value) out.push(value === undefined ? `no ${name}` : said(name, value));
  }
  for (const key of texts) {
    if (from[key] === to[key]) continue;
    // A plan beside a search is named by what is searched for.
    if (key === 'max') out.push(to.max ? `largest ${to.max}` : said(from.max, to.options[from.max] ?? ''));
    else out.push(to[key] ? `${key === 'gpu' ? '' : key + ' '}${to[key]}` : `no ${key}`);
  }
  return out.filter(Boolean).join(', ');
}

function said(name: string, value: string): string {
  return value === 'true' ? name : `${name} ${value}`;
}

export function againstOf(p: Params): number | null {
  return number(p['against']);
}
