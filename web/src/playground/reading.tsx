// What the last step did, in words, and the sums.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count, exact, percent, plural, size, span } from '../format';
import { Bytes } from '../parts/basic';
import { at, choose, go, lesson, lessons, playing, steps } from './game';
import type { Answer, Moment } from '../types/playground.gen';

const outcomes: Record<string, string> = { hit: 'from the cache', new: 'new memory', oom: 'fails' };

export function Told({ a }: { a: Answer }) {
  const step = a.steps[a.at - 1];
  const m = a.moment;
  if (!step) return <Begin a={a} />;
  return (
    <section class="told" aria-label="What happened" data-at={a.at} aria-live={playing.value ? 'off' : 'polite'}>
      <h2>
        <span class="muted">
          step {count(a.at)} of {count(a.steps.length)}
          {step.chapter && `, ${step.chapter}`}
        </span>
        <code data-field="step">{step.text}</code>
        {step.outcome && <span class={`tag outcome-${step.outcome}`}>{outcomes[step.outcome]}</span>}
      </h2>
      <ol class="sentences">
        {m.sentences.map((s) => (
          <li data-rule={s.rule}>
            <strong>{s.name}:</strong> {s.text}
          </li>
        ))}
      </ol>
      {m.message && (
        <details>
          <summary>What PyTorch would say</summary>
          <p class="mono">{m.message}</p>
        </details>
      )}
      {m.events.length > 0 && (
        <details>
          <summary>{plural(m.events.length, 'event')} of the trace</summary>
          <pre class="mono">{m.events.join('\n')}</pre>
        </details>
      )}
    </section>
  );
}

function Begin({ a }: { a: Answer }) {
  const l = lesson.value;
  return (
    <section class="told begin" aria-label="What happened" data-at={0}>
      <h2>{l ? l.title : 'An empty device'}</h2>
      <p>{l ? l.text : 'Allocate and free by hand, on the right. Every rule that the allocator applies is told here.'}</p>
      <p class="muted">
        {size(a.device.total_bytes)} of device memory
        {a.device.limit_bytes !== null && `, limit ${size(a.device.limit_bytes)}`}, {a.device.settings || 'default settings'}.
        {a.steps.length > 0 && ' Play, or step with the arrow keys.'}
      </p>
    </section>
  );
}

// Lessons are all there are, where the map of an empty device would be.
export function Lessons() {
  const now = lesson.value;
  return (
    <ul class="lessons" aria-label="Lessons">
      {(lessons.value.data?.experiments ?? []).map((e) => (
        <li>
          <button aria-current={e === now ? 'true' : undefined} onClick={() => choose(e.name)} data-lesson={e.name}>
            <strong>{e.title}</strong>
            <span class="muted">{e.text}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

export function Sums({ m }: { m: Moment }) {
  const rate = (hits: number, of: number) => (of === 0 ? '-' : percent(hits / of));
  return (
    <div class="strip" role="group" aria-label="Sums">
      <Item label="Reserved" sub={m.limit_bytes === null ? 'no limit' : `limit ${size(m.limit_bytes)}`}>
        <Bytes n={m.reserved_bytes} field="reserved_bytes" />
      </Item>
      <Item label="Allocated" sub={m.pending_bytes > 0 ? `${size(m.pending_bytes)} pending` : `asked ${size(m.requested_bytes)}`}>
        <Bytes n={m.allocated_bytes} field="allocated_bytes" />
      </Item>
      <Item label="Free" title={`In ${plural(m.free_blocks, 'block')}.`} sub={`largest ${size(m.largest_free_bytes)}`}>
        <Bytes n={m.free_bytes} field="free_bytes" />
      </Item>
      <Item label="Stranded" sub={`releasable ${size(m.releasable_bytes)}`} title="Free, but beside blocks in use: empty_cache cannot give it back. Releasable is what it can.">
        <Bytes n={m.stranded_bytes} field="stranded_bytes" />
      </Item>
      <Item label="Fragmentation" sub={`in pieces ${percent(m.external)}`} title="Reserved but not allocated, of what is reserved. In pieces: 1 - largest free block / free.">
        <span class="num" data-field="fragmentation" data-value={m.fragmentation}>
          {percent(m.fragmentation)}
        </span>
      </Item>
      <Item label="Hit rate" sub={`${count(m.hits)} of ${plural(m.requests, 'request')}`} title="Requests that the cache served.">
        <span class="num" data-field="hit_rate" data-hits={m.hits} data-requests={m.requests}>
          {rate(m.hits, m.requests)}
        </span>
      </Item>
      <Item label="Chapter hit rate" sub={`${count(m.chapter_hits)} of ${plural(m.chapter_requests, 'request')}`}>
        <span class="num" data-field="chapter_hit_rate" data-hits={m.chapter_hits} data-requests={m.chapter_requests}>
          {rate(m.chapter_hits, m.chapter_requests)}
        </span>
      </Item>
      <Item
        label="Driver calls"
        sub={m.driver_cost_us > 0 ? `about ${span(m.driver_cost_us)}` : 'none'}
        title={`${count(m.driver_allocs)} for memory, ${count(m.driver_frees)} to give it back. The time is what they took on an H200, without waiting for the device.`}
      >
        <span class="num" data-field="driver_calls">
          {count(m.driver_allocs + m.driver_frees)}
        </span>
      </Item>
    </div>
  );
}

function Item({ label, sub, children, title }: { label: string; sub: string; children: ComponentChildren; title?: string }) {
  return (
    <div class="item" title={title}>
      <div class="label">{label}</div>
      <div class="value">{children}</div>
      <div class="sub" title={sub}>
        {sub}
      </div>
    </div>
  );
}

const marks: Record<string, string> = { hit: '●', new: '○', oom: '✕' };

// Steps are the lines, with the one that is looked at.
export function Steps() {
  const box = useRef<HTMLOListElement>(null);
  const now = at.value;
  useEffect(() => {
    const list = box.current;
    const on = list?.querySelector<HTMLElement>('[aria-current]');
    if (!list || !on) return;
    const top = on.offsetTop;
    if (top < list.scrollTop || top + on.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  }, [now, steps.value]);
  const s = steps.value;
  return (
    <section class="steps-box" aria-label="Steps">
      <h2>
        Steps <span class="aside muted small-text">● cache ○ new memory ✕ fails</span>
      </h2>
      {s.length === 0 && <p class="muted">None yet.</p>}
      <ol class="step-list" ref={box} tabIndex={0} aria-label="All steps">
        {s.map((step, i) => (
          <>
            {step.chapter && step.chapter !== s[i - 1]?.chapter && <li class="chapter">{step.chapter}</li>}
            <li>
              <button
                class={i >= now ? 'later' : ''}
                aria-current={i + 1 === now ? 'step' : undefined}
                onClick={() => {
                  playing.value = false;
                  go(i + 1);
                }}
                title={`${exact(step.reserved_bytes)} reserved after it`}
              >
                <span class={`mark-${step.outcome}`} aria-label={outcomes[step.outcome] || undefined} role={step.outcome ? 'img' : undefined}>
                  {marks[step.outcome]}
                </span>
                <span class="mono">{step.text}</span>
              </button>
            </li>
          </>
        ))}
      </ol>
    </section>
  );
}
