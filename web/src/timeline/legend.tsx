// What the colours of the timeline stand for, and what the filter chooses.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { count, plural, size } from '../format';
import { css, indexed, legend, plainName } from '../palette';
import { At, Bytes, Check, Swatch, Trouble } from '../parts/basic';
import { meaning } from '../parts/word';
import { put, run } from '../route';
import { load, meta, moment, select } from '../state';
import { theme } from '../theme';
import type { Legend as Answer, Meta } from '../types/view.gen';
import { asked, colouring, filtered, isolate, lit, matches, only, param, what } from './view';

// Alive says who holds the memory at the moment, by colour.
export function Alive() {
  const at = moment.value ?? -1;
  const asked = useSignal(at);
  useEffect(() => {
    // A moment on its way asks for nothing.
    const timer = setTimeout(() => (asked.value = at), 120);
    return () => clearTimeout(timer);
  }, [at]);
  const got = load<Answer>('legend', { run: run.value, color: colouring.value, event: asked.value }).value;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  if (!got.data) return null;
  const { entries, total_bytes: total, others_bytes: others } = got.data;
  const of = indexed(colouring.value, theme.value, meta.value.data!);
  return (
    <section aria-label="Alive at the moment" data-panel="alive">
      <h2>{asked.value < 0 ? 'Alive before the first event' : `Alive after event ${count(asked.value)}`}</h2>
      <ol class="leaves">
        {entries.slice(0, 24).map((e) => (
          <li>
            <button class="alive" {...isolating(e.colour)} title={`${e.label}: show it alone`}>
              <Swatch colour={css(of(e.colour))} />
              <Bytes n={e.bytes} />
              <span>{colouring.value === 'category' ? plainName(e.label) : e.label}</span>
            </button>
          </li>
        ))}
      </ol>
      <p class="muted small-text">
        {size(total)} in all{others > 0 && `, ${size(others)} of it in others`}
      </p>
    </section>
  );
}

// isolating lets an entry of a legend stand out under the pointer and show what
// it stands for alone when it is pressed.
function isolating(colour: number) {
  return {
    onClick: () => isolate(colouring.value, colour),
    onPointerEnter: () => (lit.value = colour),
    onPointerLeave: () => (lit.value = null),
    onFocus: () => (lit.value = colour),
    onBlur: () => (lit.value = null),
    'aria-pressed': param('pick') === String(colour),
    'data-pick': colour,
  };
}

// Matched is what the filter chooses, in numbers, and the ways from one match to
// the next.
export function Matched() {
  if (!filtered.value || what.value !== 'blocks') return null;
  const got = matches.value;
  if (!got || (!got.data && !got.error)) return null;
  if (got.error) return <Trouble>{got.error}</Trouble>;
  const d = got.data!;
  return (
    <section aria-label="What the filter chooses" data-panel="matches" data-blocks={d.blocks}>
      <h2>
        {plural(d.blocks, 'block matches', 'blocks match')}
        <span class="together aside">
          <button class="small" disabled={d.previous === null} onClick={() => select(d.previous)} title="Previous match (M)" aria-label="Previous match">
            ‹
          </button>
          <button class="small" disabled={d.next === null} onClick={() => select(d.next)} title="Next match (m)" aria-label="Next match">
            ›
          </button>
        </span>
      </h2>
      {d.blocks > 0 && (
        <p>
          <Bytes n={d.event_bytes} field="match_event_bytes" /> in {plural(d.event_blocks, 'block')} at the moment; at most{' '}
          <Bytes n={d.most_bytes} field="match_most_bytes" />
          {d.most_event !== null && d.most_event >= 0 && (
            <>
              , after event <At event={d.most_event} />
            </>
          )}
        </p>
      )}
      <p class="links">
        <Check
          label="only these"
          name="only"
          on={only.value}
          onPick={(on) => put({ only: on }, 'push')}
          title="Stack what the filter chooses alone, from zero (i)"
        />
        <button class="link" onClick={clearFilter}>
          Clear the filter
        </button>
      </p>
    </section>
  );
}

function clearFilter(): void {
  put({ stack: null, min: null, max: null, stream: null, pool: null, like: null, pick: null, alive: null, never: null, only: null }, 'push');
}

export function Legend({ m }: { m: Meta }) {
  const keys = legend(colouring.value, theme.value, m);
  const blocks = what.value === 'blocks';
  return (
    <span class="legend">
      <span class="key reserved-line" title={meaning('reserved')}>
        reserved
      </span>
      {blocks && (
        <span class="key highest-line" title="The highest active memory within each column; blocks are drawn as they are at its end">
          highest
        </span>
      )}
      {blocks && m.exact && (
        <button
          class="key requested-line"
          aria-pressed={asked.value}
          onClick={() => put({ asked: !asked.value })}
          title="Requested bytes, as a line; the rest up to the top is rounding"
          data-line="requested"
        >
          requested
        </button>
      )}
      <span class="key small" title="Those too small to draw, in sum: the height is always that of all bytes">
        small
      </span>
      {blocks && (
        <span class="key pending" title="Freed, but still in use on another stream">
          pending
        </span>
      )}
      {m.at_least && (
        <span class="tag" title="Recording began mid-run, and the file does not contain all that was allocated before">
          lower bounds
        </span>
      )}
      {colouring.value === 'stack' && <span class="muted">a colour for each of the largest 20 call stacks, grey for the others</span>}
      {keys.map((k) => (
        <button class="key swatch" {...isolating(k.index)} title="Show it alone">
          <Swatch colour={k.colour} />
          {k.text}
        </button>
      ))}
    </span>
  );
}
