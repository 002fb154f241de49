// Playground: the allocator to play with, step by step.

import { useEffect } from 'preact/hooks';
import { useKeys } from '../keys';
import { Select, Trouble, Wait } from '../parts/basic';
import { Side } from '../parts/side';
import { answer, at, attend, begin, choose, forward, lesson, lessons, steps, togglePlay, trouble, turn } from '../playground/game';
import { Hand } from '../playground/hand';
import { SegmentMap } from '../playground/map';
import { Lessons, Steps, Sums, Told } from '../playground/reading';
import { ShareDialog, shareShown } from '../playground/share';
import { Slider, Transport } from '../playground/transport';

const own = 'own';

export function Playground() {
  useEffect(attend, []);
  useKeys('Playground', () => [
    { keys: ['ArrowLeft', 'ArrowRight'], text: 'Step back, forward', run: (e) => forward(e.key === 'ArrowRight' ? 1 : -1) },
    { keys: [',', '.'], text: 'Step back, forward', run: (e) => forward(e.key === '.' ? 1 : -1) },
    { keys: ['PageUp', 'PageDown'], text: 'Previous, next chapter', run: (e) => turn(e.key === 'PageDown' ? 1 : -1) },
    { keys: ['Home', 'End'], text: 'To the beginning, the end', run: (e) => forward(e.key === 'End' ? steps.value.length : -steps.value.length) },
    { keys: ['p', ' '], shown: 'p', text: 'Play or pause', run: togglePlay },
    { keys: ['s'], text: 'Share', run: () => (shareShown.value = true) },
  ]);
  const data = lessons.value.data;
  if (lessons.value.error) return <Trouble>{lessons.value.error}</Trouble>;
  if (!data) return <Wait>Asking for the lessons</Wait>;
  const a = answer.value;
  return (
    <div class="playground">
      <div class="tools" role="toolbar" aria-label="Playground">
        <Select
          label="experiment"
          name="lesson"
          value={lesson.value?.name ?? own}
          options={[...data.experiments.map((e) => ({ value: e.name, text: e.title })), { value: own, text: 'your own' }]}
          onPick={(v) => (v === own ? begin() : choose(v))}
        />
        <Transport />
        <span class="grow" />
        <button onClick={begin} title="An empty device" data-act="begin">
          Start empty
        </button>
        <button onClick={() => (shareShown.value = true)} title="Share (s)" data-act="share">
          Share
        </button>
      </div>
      {trouble.value && <Trouble>{trouble.value}</Trouble>}
      {!a && !trouble.value && <Wait>Playing</Wait>}
      {a && (
        <>
          <Slider />
          <div class="with-side">
            <div class="stage">
              <Sums m={a.moment} />
              <Told a={a} />
              {a.at === 0 ? <Lessons /> : <SegmentMap m={a.moment} />}
            </div>
            <Side label="By hand, settings, steps">
              <Hand />
              <Steps />
            </Side>
          </div>
          <span hidden data-field="at" data-at={a.at} data-wanted={at.value} />
        </>
      )}
      <ShareDialog />
    </div>
  );
}
