// What a plan says, in the words of the command.

import { delta, size, sizeUp } from '../format';
import type { Question } from './question';
import type { Document as Answer, Failure, Reason } from '../types/plan.gen';
import type { Offer } from '../types/view.gen';

// Outcome is what plans and dry runs both have.
export type Outcome = Omit<Answer, 'options' | 'model' | 'parameters' | 'preset' | 'beside' | 'measured' | 'rests_on' | 'max' | 'recompute' | 'sources' | 'leaves_out'> & { leaves_out?: string[] };

// phaseText names a phase with its step.
export function phaseText(phase: string, step: number): string {
  if (step === 0 || phase === 'prefill') return phase;
  return phase === 'decode' ? `${phase} of token ${step}` : `${phase} of step ${step}`;
}

// roomText says what there is to fit into.
export function roomText(q: Question, a: Outcome, o: Offer): string {
  const card = o.cards.find((c) => c.name === q.gpu);
  const parts: string[] = [];
  if (card) parts.push(`${card.title} (${size(card.total_bytes)}, ${size(Math.max(0, card.total_bytes - a.context_bytes - a.collectives_bytes))} of it for the allocator)`);
  else if (q.gpu) parts.push(`a GPU of ${q.gpu}`);
  if (q.limit) parts.push(`the limit of ${q.limit}`);
  return parts.join(' and ') || 'what the settings leave';
}

export interface Verdict {
  mark: string;
  text: string;
  good: boolean | null;
}

export function verdict(q: Question, a: Outcome, o: Offer): Verdict {
  const need = sizeUp(a.smallest_limit_bytes);
  if (a.fits === null || a.headroom_bytes === null) {
    return { mark: `Needs ${need}`, text: 'for the allocator at least. Choose a GPU or a limit to see whether that fits.', good: null };
  }
  const without = a.leaves_out?.length ? `without ${a.leaves_out.join(' and ')} ` : '';
  const into = roomText(q, a, o);
  const spare = a.headroom_bytes;
  if (a.fits && spare >= 0) {
    const may = a.tight ? ` But the plan may be up to ${size(a.range.reserved_high_bytes - a.peak_reserved_bytes)} too low: it may not fit.` : '';
    return { mark: 'Fits', text: `${without}into ${into}, with ${size(spare)} to spare: the run needs at least ${need}.${may}`, good: a.tight ? null : true };
  }
  if (a.fits) return { mark: 'Fits', text: `${without}into ${into}.`, good: true };
  if (spare < 0) return { mark: 'Does not fit', text: `into ${into}: ${size(-spare)} is missing; the run needs at least ${need}.`, good: false };
  return { mark: 'Does not fit', text: `into ${into}, although ${need} would do: a lower limit releases the cache at other moments, and that happens to help.`, good: false };
}

export function failureText(f: Failure): string {
  const by = [f.op && `op \`${f.op}\``, f.module].filter(Boolean).join(', ');
  const where = f.phase ? ` in the ${phaseText(f.phase, f.step)}` : '';
  return `It fails on a ${size(f.bytes)} request${by && ` (${by})`}${where}, with ${size(f.allocated_bytes)} allocated and ${size(f.reserved_bytes)} reserved.`;
}

// rangeText is from one size to another; a unit that both have is written once.
export function rangeText(low: number, high: number): string {
  const [from, to] = [size(low), size(high)];
  const unit = to.slice(to.indexOf(' '));
  return `${from.endsWith(unit) ? from.slice(0, -unit.length) : from} to ${to}`;
}

// layersText says which layers are recomputed.
export function layersText(layers: readonly number[]): string {
  const [one, last] = [layers[0], layers[layers.length - 1]];
  if (one === undefined || last === undefined) return 'no layer';
  if (one === last) return `layer ${one}`;
  return last - one + 1 === layers.length ? `layers ${one} to ${last}` : `${layers.length} of the layers ${one} to ${last}`;
}

// reasonText says what a reason for a range comes to; nothing if that is nothing.
export function reasonText(r: Reason): string {
  const said = (low: number, high: number) => (low === 0 && high === 0 ? '' : low === high ? `±${size(low)}` : `${delta(-low)} to ${delta(high)}`);
  const allocated = said(r.low_bytes, r.high_bytes);
  const reserved = said(r.reserved_low_bytes, r.reserved_high_bytes);
  if (!allocated && !reserved) return '';
  if (allocated === reserved) return `${r.name}: ${allocated}`;
  const parts = [allocated && `allocated ${allocated}`, reserved && `reserved ${reserved}`].filter(Boolean);
  return `${r.name}: ${parts.join(', ')}`;
}

// outsideText says what the process holds beside the allocator's memory.
export function outsideText(a: Outcome): string {
  const nccl = a.collectives_bytes > 0 ? `, ${size(a.collectives_bytes)} NCCL` : '';
  return `${size(a.context_bytes)} of it CUDA's context${a.context_estimated ? ' (estimated)' : ''}${nccl}`;
}
