// Playing the segments through time.

import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Select } from '../parts/basic';
import { meta, moment, select } from '../state';

export const playing = signal(false);

const speeds = [
  ['1', 'event by event'],
  ['20', 'the run in 20 s'],
  ['5', 'the run in 5 s'],
] as const;
const speed = signal<string>('20');

const frame = 100; // milliseconds

// togglePlay begins at the beginning if the moment is at the end.
export function togglePlay(): void {
  playing.value = !playing.value;
  const m = meta.value.data;
  if (playing.value && m && (moment.value ?? 0) >= m.events - 1) select(-1, 'replace');
}

// usePlay moves the moment on whenever the one before is drawn.
export function usePlay(drawn: number | null): void {
  const at = moment.value;
  const on = playing.value;
  const m = meta.value.data;
  useEffect(() => () => void (playing.value = false), []);
  useEffect(() => {
    if (!on || !m || at === null || drawn !== at) return;
    if (at >= m.events - 1) {
      playing.value = false;
      return;
    }
    const by = speed.value === '1' ? 1 : Math.max(1, Math.round((m.events * frame) / 1000 / Number(speed.value)));
    const timer = setTimeout(() => select(at + by, 'replace'), frame);
    return () => clearTimeout(timer);
  }, [on, at, drawn, m, speed.value]);
}

export function Play() {
  return (
    <span class="together">
      <button class="play" onClick={togglePlay} aria-pressed={playing.value} title="Play or pause (r)" data-play>
        {playing.value ? '❚❚ pause' : '▶ play'}
      </button>
      <Select
        label="speed"
        name="speed"
        value={speed.value}
        options={speeds.map(([value, text]) => ({ value, text }))}
        onPick={(v) => (speed.value = v)}
      />
    </span>
  );
}
