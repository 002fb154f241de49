// A field of a filter. The server judges what is typed, by the rules that filters
// have; until it is complete it stays in the field, and the page shows what it
// showed.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get } from '../api';
import { run } from '../route';
import type { Checked } from '../types/view.gen';
import { Field } from './basic';

export function Judged({
  kind,
  label,
  name,
  value,
  onText,
  width,
  placeholder = 'regular expression',
}: {
  kind: 'stack' | 'size' | 'addr';
  label: string;
  name: string;
  value: string;
  onText: (v: string) => void;
  width: number;
  placeholder?: string;
}) {
  const wrong = useSignal<string | null>(null);
  const latest = useRef(value);
  useEffect(() => {
    wrong.value = null;
    latest.current = value;
  }, [value]);
  const judge = async (v: string): Promise<boolean> => {
    latest.current = v;
    const got = v === '' ? null : await get<Checked>('check', { run: run.value, [kind]: v }).catch(() => null);
    if (latest.current !== v) return true; // more was typed, or the address changed
    wrong.value = got?.wrong ?? null;
    if (wrong.value === null) onText(v);
    return wrong.value === null;
  };
  return <Field label={label} name={name} placeholder={placeholder} value={value} onText={judge} wrong={wrong.value} width={width} />;
}
