// Colours of allocations. What has a name has the colour that package palette
// gives it, on the page, in the plan and in the report; amounts take a ramp from
// blue to yellow whose lightness rises evenly.

import type { Meta } from './types/view.gen';
import { grey, hues, names, ordinals } from './types/palette.gen';
import type { Theme } from './theme';
import { plural, pool, stream, tickSize } from './format';

export type Colouring = 'category' | 'stack' | 'size' | 'stream' | 'pool' | 'lifetime' | 'age';

// What blocks over time can be coloured by.
export const colourings: readonly [Colouring, string][] = [
  ['category', 'category'],
  ['stack', 'call stack'],
  ['stream', 'stream'],
  ['pool', 'pool'],
  ['size', 'size'],
  ['lifetime', 'lifetime'],
];

// At a moment, too, where a block has an age.
export const momentColourings: readonly [Colouring, string][] = [...colourings.filter(([c]) => c !== 'lifetime'), ['age', 'age']];

type Rgb = readonly [number, number, number];

function mix(a: Rgb, b: Rgb, part: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as unknown as Rgb;
}

const white: Rgb = [255, 255, 255];
const dark: Rgb = [17, 21, 28];

const ramp: readonly Rgb[] = [
  [0, 45, 95],
  [38, 70, 109],
  [74, 92, 110],
  [106, 115, 117],
  [137, 137, 119],
  [171, 161, 112],
  [207, 188, 94],
  [246, 217, 60],
];

function along(part: number): Rgb {
  const at = Math.max(0, Math.min(1, part)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  return mix(ramp[i]!, ramp[i + 1]!, at - i);
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

// Indices of the server that stand for no one thing.
const others = ordinals.length;
const unknown = others + 1;
const never = 63; // a lifetime without end; an age from before the first event

const smallest = 9; // blocks are multiples of 512 bytes
const largest = 34;
const longest = 20;

const named = new Map<string, { readonly light: Rgb; readonly dark: Rgb }>(names.map((n) => [n.name, n.shade]));

// plainName is a category as people read it.
export function plainName(category: string): string {
  return category.replaceAll('_', ' ');
}

// colourOf is the colour of a category, or of a kind of memory of a plan.
export function colourOf(name: string, theme: Theme): string {
  return css((named.get(plainName(name)) ?? grey)[theme]);
}

// indexed is the colour of an index as the server gives it, for one way of
// colouring.
export function indexed(colouring: Colouring, theme: Theme, meta: Meta): (index: number) => Rgb {
  switch (colouring) {
    case 'category':
      return (i) => (named.get(plainName(meta.categories[i] ?? '')) ?? grey)[theme];
    case 'size':
      return (i) => along((i - smallest) / (largest - smallest));
    case 'lifetime':
    case 'age':
      return (i) => (i >= never ? mix(hues[3]!, theme === 'dark' ? dark : white, 0.1) : along(i / longest));
    default:
      return (i) => (ordinals[i] ?? grey)[theme];
  }
}

// tableSize is how many indices there are at most.
export const tableSize = 64;

// table has the colours of all indices, as bytes for a texture.
export function table(colouring: Colouring, theme: Theme, meta: Meta): Uint8Array {
  const of = indexed(colouring, theme, meta);
  const out = new Uint8Array(tableSize * 4);
  for (let i = 0; i < tableSize; i++) {
    const [r, g, b] = of(i);
    out.set([r, g, b, 255], i * 4);
  }
  return out;
}

export interface Key {
  index: number;
  colour: string;
  text: string;
}

// legend says what the colours mean.
export function legend(colouring: Colouring, theme: Theme, meta: Meta): Key[] {
  const of = indexed(colouring, theme, meta);
  const key = (i: number, text: string): Key => ({ index: i, colour: css(of(i)), text });
  const first = (list: readonly string[]) => [
    ...list.slice(0, others).map((text, i) => key(i, text)),
    ...(list.length > others ? [key(others, 'others')] : []),
  ];
  switch (colouring) {
    case 'stack':
      return [];
    case 'size':
      return [10, 15, 20, 25, 30, 33].map((i) => key(i, tickSize(2 ** i)));
    case 'lifetime':
      return [...[0, 5, 10, 15, 20].map((i) => key(i, plural(2 ** i, 'event'))), key(never, 'never freed')];
    case 'age':
      return [...[0, 5, 10, 15, 20].map((i) => key(i, plural(2 ** i, 'event'))), key(never, 'before the first event')];
    case 'stream':
      return first(meta.streams.map((s) => 'stream ' + stream(s)));
    case 'pool':
      return [...first(meta.pools.map((p) => 'pool ' + pool(p))), ...(meta.pool_unknown ? [key(unknown, 'pool ' + pool(null))] : [])];
    case 'category':
      return meta.categories.map((c, i) => key(i, plainName(c)));
  }
}

// Lines of a chart differ in colour and in dashes: of two that overlap both show.
// The hues are those that have contrast as thin lines.
const lineHues = [0, 5, 2, 3, 1, 4] as const;
const dashes: readonly (readonly number[])[] = [[], [8, 3], [3, 3], [10, 3, 3, 3], [6, 6], [1, 3]];

export interface LineStyle {
  colour: string;
  dash: readonly number[];
}

export function lineStyle(i: number, theme: Theme): LineStyle {
  const hue = hues[lineHues[i % lineHues.length]!]!;
  const round = Math.floor(i / lineHues.length);
  return { colour: css(theme === 'dark' ? mix(hue, white, 0.25) : mix(hue, dark, 0.12)), dash: dashes[(i + round) % dashes.length]! };
}

// changed is the ground of something that grew (red) or shrank (blue), by how
// much of it changed: from -1 to 1.
export function changed(part: number, theme: Theme): string {
  const still: Rgb = theme === 'dark' ? [44, 51, 63] : [232, 234, 238];
  const [more, less]: [Rgb, Rgb] =
    theme === 'dark'
      ? [
          [158, 52, 44],
          [38, 92, 168],
        ]
      : [
          [240, 124, 110],
          [118, 166, 240],
        ];
  const p = Math.max(-1, Math.min(1, part));
  // Small changes are seen too.
  return p === 0 ? css(still) : css(mix(still, p > 0 ? more : less, 0.2 + 0.8 * Math.abs(p)));
}
