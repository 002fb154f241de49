// The frame around the screens.

import type { FunctionComponent } from 'preact';
import { computed } from '@preact/signals';
import { count, percent, size } from './format';
import { useKeys } from './keys';
import { Extra } from './extra';
import { Empty, Go, Trouble, Wait } from './parts/basic';
import { DropAnywhere, DropZone, FilesDialog, filesShown, without } from './parts/files';
import { HelpDialog, helpShown } from './parts/help';
import { MomentBar } from './parts/moment';
import { block, event, home, isExtra, open, range, run, screen, screens, show, visit, type Screen } from './route';
import { copyLink, current, extra, jump, listed, lost, meta, notice, outcome, pin, runs, select, selectRange, step, toPeak } from './state';
import { theme, toggle } from './theme';
import { Overview } from './screens/overview';
import { Timeline } from './screens/timeline';
import { Segments } from './screens/segments';
import { Stacks } from './screens/stacks';
import { Events } from './screens/events';
import { WhatIf } from './screens/whatif';
import { Compare } from './screens/compare';
import { Playground } from './screens/playground';
import { AllRuns, Start, ToldDialog } from './screens/start';
import { Plan } from './screens/plan';

const pages: Record<Screen, { title: string; page?: FunctionComponent }> = {
  overview: { title: 'Overview', page: Overview },
  timeline: { title: 'Timeline', page: Timeline },
  segments: { title: 'Segments', page: Segments },
  stacks: { title: 'Stacks', page: Stacks },
  events: { title: 'Events', page: Events },
  whatif: { title: 'What-if', page: WhatIf },
  compare: { title: 'Compare', page: Compare },
  playground: { title: 'Playground', page: Playground },
  plan: { title: 'Plan', page: Plan },
  live: { title: 'Live' },
  fleet: { title: 'Fleet' },
};

// tabs are the screens that there are. Where there is Live or Fleet one begins with
// it; its key is 0.
const tabs = computed(() => screens.filter((s) => s === extra.value).concat(screens.filter((s) => !isExtra(s))));
const keyOf = (s: Screen) => String(isExtra(s) ? 0 : screens.indexOf(s) + 1);

export function App() {
  usePageKeys();
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>
        Skip to the screen
      </a>
      <Header />
      {lost.value && <Trouble>{lost.value}</Trouble>}
      <main id="main" tabIndex={-1}>
        <Body />
      </main>
      <MomentBar />
      <FilesDialog />
      <ToldDialog />
      <HelpDialog />
      <DropAnywhere />
      <div class="notice" role="status" aria-live="polite">
        {notice.value && <span>{notice.value}</span>}
      </div>
    </>
  );
}

function Header() {
  return (
    <header class="top">
      <h1>
        <a href={`#//${extra.value ?? 'overview'}`} class="home" title={runs.value.length > 1 ? 'All runs' : undefined}>
          <Mark />
          Ashlar
        </a>
      </h1>
      <nav aria-label="Screens">
        {tabs.value.map((s) => (
          <Go screen={s} title={`${pages[s].title} (${keyOf(s)})`} tab on={screen.value === s}>
            {pages[s].title}
          </Go>
        ))}
      </nav>
      <RunPicker />
      <button onClick={() => (filesShown.value = true)} title="Files (F)">
        Files
      </button>
      <button onClick={copyLink} title="Copy link: the command that shows this again (L)" aria-label="Copy link" data-ask="link">
        Link
      </button>
      <button
        class="icon"
        onClick={toggle}
        title="Light or dark (t)"
        aria-label={theme.value === 'dark' ? 'Switch to light' : 'Switch to dark'}
      >
        {theme.value === 'dark' ? '☀' : '☾'}
      </button>
      <button class="icon" onClick={() => (helpShown.value = true)} title="Keys (?)" aria-label="Keys">
        ?
      </button>
    </header>
  );
}

// Blocks that fit without gaps.
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <rect x="0" y="1" width="9" height="4" />
      <rect x="10" y="1" width="6" height="4" />
      <rect x="0" y="6" width="5" height="4" />
      <rect x="6" y="6" width="10" height="4" />
      <rect x="0" y="11" width="9" height="4" />
      <rect x="10" y="11" width="6" height="4" />
    </svg>
  );
}

function RunPicker() {
  const all = runs.value;
  if (all.length === 0) return <span class="runs" />;
  return (
    <label class="runs" title={`${current.value?.label ?? ''} ([ and ] switch between runs)`.trim()}>
      <span class="hidden">Run</span>
      <select name="run" value={String(run.value ?? '')} onChange={(e) => pick(Number(e.currentTarget.value))}>
        {(all.length > 1 || run.value === null) && (
          <option value="" selected={run.value === null}>
            {all.length > 1 ? 'all runs' : 'none'}
          </option>
        )}
        {all.map((r) => (
          <option value={String(r.id)} selected={r.id === run.value}>
            {r.ooms > 0 && `${outcome(r)}: `}
            {r.label}
            {r.state === 'failed' ? ' (cannot be read)' : r.state === 'loading' ? ' (reading)' : ''}
          </option>
        ))}
      </select>
      {all.length > 1 && <span class="muted of">of {count(all.length)}</span>}
    </label>
  );
}

// pick goes to a run; from Live and Fleet to its overview.
function pick(id: number): void {
  if (!id) home();
  else if (isExtra(screen.value)) visit(id, 'overview', {});
  else open(id);
}

function Body() {
  const c = current.value;
  if (isExtra(screen.value)) return <Extra key={screen.value} name={screen.value} />;
  if (screen.value === 'playground') return <Playground />; // they are about no run
  if (screen.value === 'plan') return <Plan />;
  if (!listed.value) return <Wait>Asking for the files</Wait>;
  if (runs.value.length === 0) return <Start />;
  if (run.value === null) return <AllRuns />;
  if (!c) return <Empty>There is no such run: choose one above.</Empty>;
  if (c.state === 'failed') {
    return (
      <div class="centre">
        <Trouble>
          <strong>{c.label}</strong> could not be read: {without(c.file, c.error ?? '')}
        </Trouble>
        <DropZone />
      </div>
    );
  }
  if (c.state === 'loading') {
    const part = c.file_bytes > 0 ? c.read_bytes / c.file_bytes : 0;
    return (
      <div class="centre">
        <Wait>
          Reading {c.label}: {size(c.read_bytes)}
          {c.file_bytes > 0 && ` of ${size(c.file_bytes)}, ${percent(Math.min(1, part), 0)}`}
        </Wait>
        {c.file_bytes > 0 && <progress class="long" value={part} max={1} aria-label="Reading the file" />}
      </div>
    );
  }
  const got = meta.value;
  if (got.error) {
    return (
      <div class="centre">
        <Trouble>{got.error}</Trouble>
      </div>
    );
  }
  const Page = pages[screen.value].page!;
  return <Page key={c.id} />;
}

function usePageKeys(): void {
  useKeys('Everywhere', () => [
    ...tabs.value.map((s) => ({ keys: [keyOf(s)], text: pages[s].title, run: () => show(s) })),
    { keys: ['[', ']'], text: 'Previous, next run', run: (e: KeyboardEvent) => turn(e.key === ']' ? 1 : -1) },
    { keys: ['F'], text: 'Files', run: () => (filesShown.value = true) },
    { keys: ['L'], text: 'Copy the command that shows this again', run: copyLink },
    { keys: ['R'], text: 'All runs', run: home },
    { keys: ['t'], text: 'Light or dark', run: toggle },
    { keys: ['?'], text: 'This sheet', run: () => (helpShown.value = !helpShown.value) },
    { keys: ['/'], text: 'Search or filter', run: () => document.querySelector<HTMLInputElement>('main input[type=text]')?.focus() },
    { keys: ['Escape'], text: 'Deselect the block, then the range, then the moment', run: letGo },
  ], [extra.value]);
  useKeys('The moment', () => [
    { keys: [',', '.'], text: 'Previous, next event', run: (e: KeyboardEvent) => step(e.key === '.' ? 1 : -1) },
    { keys: ['<', '>'], text: '100 events back, forward', run: (e: KeyboardEvent) => step(e.key === '>' ? 100 : -100) },
    { keys: ['N', 'n'], text: 'Previous, next segment event', run: (e: KeyboardEvent) => jump('segment', e.key === 'n' ? 1 : -1) },
    { keys: ['O', 'o'], text: 'Previous, next out-of-memory event', run: (e: KeyboardEvent) => jump('oom', e.key === 'o' ? 1 : -1) },
    { keys: ['p', 'P'], text: 'Peak of allocated, of reserved memory', run: (e: KeyboardEvent) => toPeak(e.key === 'p' ? 'allocated' : 'reserved') },
  ]);
}

function letGo(): void {
  if (block.value !== null) pin(null);
  else if (range.value !== null) selectRange(null);
  else if (event.value !== null) select(null);
}

function turn(by: number): void {
  const all = runs.value.filter((r) => r.state !== 'failed');
  const i = all.findIndex((r) => r.id === run.value);
  const next = all[(i + by + all.length) % all.length];
  if (next) open(next.id);
}
