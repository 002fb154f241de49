// The rows of the list of events, asked for in pages as they come into view.

import { get, words, type Query } from '../api';
import { run } from '../route';
import type { EventRow, Events } from '../types/view.gen';

const page = 200; // rows of one question
const mostPages = 60;

// Source keeps the pages of a list that were asked for.
export class Source {
  readonly pages = new Map<number, EventRow[]>();
  private readonly asked = new Set<number>();
  private readonly stop = new AbortController();
  length = -1; // rows; not known yet
  matches = 0; // events

  constructor(
    private readonly filter: Record<string, string>,
    private readonly folded: boolean,
    private readonly changed: (error: string | null) => void,
  ) {}

  row(i: number): EventRow | undefined {
    const p = Math.floor(i / page);
    const rows = this.pages.get(p);
    if (!rows && !this.asked.has(p)) void this.ask(p);
    return rows?.[i - p * page];
  }

  private async ask(p: number): Promise<void> {
    this.asked.add(p);
    try {
      const got = await get<Events>('events', { run: run.value, row: p * page, count: page, ...this.question() }, this.stop.signal);
      if (this.pages.size >= mostPages) {
        const oldest = this.pages.keys().next().value!;
        this.pages.delete(oldest);
        this.asked.delete(oldest);
      }
      this.pages.set(p, got.rows);
      this.length = got.listed;
      this.matches = got.matches;
      this.changed(null);
    } catch (err) {
      this.asked.delete(p);
      if (!this.stop.signal.aborted) {
        this.length = Math.max(0, this.length);
        this.changed(words(err));
      }
    }
  }

  private question(): Query {
    return { ...this.filter, fold: this.folded ? 1 : null };
  }

  // position is the place in the list of the first event that is not before one.
  async position(e: number): Promise<number> {
    if (Object.keys(this.filter).length === 0 && !this.folded) return Math.max(0, e);
    const got = await get<Events>('events', { run: run.value, from: Math.max(0, e), count: 1, ...this.question() }, this.stop.signal);
    return got.first_match;
  }

  cancel(): void {
    this.stop.abort();
  }
}
