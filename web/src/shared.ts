// What screens with a script of their own take from this one: there is one copy of
// it on the page. A screen imports from here alone.

export { Fragment, jsx, jsxs } from 'preact/jsx-runtime';
export { useEffect, useMemo } from 'preact/hooks';
export { computed, effect, signal, useSignal } from '@preact/signals';
export { aborted, get, words, type Query } from './api';
export { provide } from './extra';
export { count, delta, percent, plural, size, span } from './format';
export { useKeys, useMouse } from './keys';
export { lineStyle } from './palette';
export { Bytes, Check, Choice, Empty, Field, Go, Panel, Select, Trouble, Wait } from './parts/basic';
export { Lines, Swatch } from './parts/lines';
export { Cell } from './compare/ranks';
export { repeat } from './repeat';
export { link, place, put, type Change } from './route';
export { lost, visitFile } from './state';
export { ink, theme } from './theme';
