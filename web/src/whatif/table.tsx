// What became of the run under each of the settings.

import { count, exact, plural, seconds, size, sizeUp } from '../format';
import { Bytes, Copy, Delta, Go, Stack } from '../parts/basic';
import { Swatch } from '../parts/lines';
import { confText, variantOf, type Question } from './question';
import type { Choice } from '../types/tune.gen';
import type { Document as Answer, Failure, Result } from '../types/whatif.gen';

export interface Look {
  colour: string;
  dash: readonly number[];
}

export function Outcomes({
  answer,
  choices,
  waiting,
  question,
  recommended,
  looks,
  picked,
  onPick,
}: {
  answer: Answer;
  choices: ReadonlyMap<number, Choice>;
  waiting: boolean; // for the choices
  question: Question;
  recommended: string | null;
  looks: readonly Look[];
  picked: number | null;
  onPick: (i: number | null) => void;
}) {
  const own = answer.results.find((r) => r.recorded);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Outcomes">
      <table class="grid outcomes">
        <thead>
          <tr>
            <th scope="col">Settings</th>
            <th scope="col">Outcome</th>
            <th scope="col" class="right" title="The most that was reserved; of a run that fails, up to there">
              Peak reserved
            </th>
            <th scope="col" class="right">
              Against recorded
            </th>
            <th
              scope="col"
              class="right"
              title="The least memory with which the recording passes, found by bisection. The smallest limit is the same, but for expandable segments: they may go beyond a limit by a part of a granule, and then it stands below."
            >
              Needs
            </th>
            <th scope="col" class="right" title="An estimate of how long the driver gives and takes memory, by costs measured on an H200">
              Driver
            </th>
            <th scope="col" class="right" title="How often the cache was emptied to make room">
              Retries
            </th>
            <th scope="col">Segments</th>
            <th scope="col">Line to export</th>
          </tr>
        </thead>
        <tbody>
          {answer.results.map((r, i) => (
            <Row
              r={r}
              choice={choices.get(i) ?? null}
              waiting={waiting}
              against={own && !r.recorded ? { own, ended: answer.on_oom === 'die' && (own.fails || r.fails) } : null}
              question={question}
              best={recommended !== null && recommended === r.settings && !r.recorded}
              skip={answer.on_oom === 'skip'}
              look={looks[i]!}
              on={picked === i}
              onPick={() => onPick(picked === i ? null : i)}
            />
          ))}
        </tbody>
      </table>
      {own && answer.on_oom === 'die' && answer.results.some((r) => !r.recorded && (own.fails || r.fails)) && (
        <p class="muted small-text" data-field="uncompared">
          {uncompared(own)}
        </p>
      )}
    </div>
  );
}

function Row({
  r,
  choice,
  waiting,
  against,
  question,
  best,
  skip,
  look,
  on,
  onPick,
}: {
  r: Result;
  choice: Choice | null;
  waiting: boolean;
  against: { own: Result; ended: boolean } | null; // ended: one of the two did at a failure
  question: Question;
  best: boolean;
  skip: boolean;
  look: Look;
  on: boolean;
  onPick: () => void;
}) {
  const f = r.first_failure;
  const at = f ? (f.event ?? -1) : (r.peak_reserved_at.event ?? -1);
  return (
    <tr class={on ? 'on' : ''} data-variant={r.recorded ? 'recorded' : r.settings} data-fails={r.fails}>
      <th scope="row">
        <button class="variant-name" aria-pressed={on} onClick={onPick} title="Bring out its curve">
          <Swatch colour={look.colour} dash={look.dash} />
          <span>
            {r.recorded && <span class="muted">recorded: </span>}
            <Conf conf={r.settings} />
            {r.needs && <small class="muted"> {r.needs}</small>}
            {best && <span class="tag good-tag">recommended</span>}
          </span>
        </button>
      </th>
      <td>
        <span class={r.fails ? 'fails' : 'passes'} data-field="outcome">
          {outcome(r, skip)}
        </span>
        <Lower r={r} choice={choice} />
      </td>
      <td class="right">
        <Bytes n={r.peak_reserved_bytes} field="peak_reserved_bytes" />
      </td>
      <td class="right">
        <Against r={r} against={against} />
      </td>
      <td class="right">
        <Later choice={choice} waiting={waiting} n={choice?.need_bytes ?? null} field="need_bytes" />
        {choice && choice.smallest_limit_bytes !== choice.need_bytes && (
          <div class="muted over-limit" title="The lowest limit under which no request fails: expandable segments go beyond it by a part of a granule.">
            limit <Bytes n={choice.smallest_limit_bytes} field="smallest_limit_bytes" />
          </div>
        )}
        <Over n={choice?.smallest_limit_bytes ?? null} limit={r.limit_bytes} />
      </td>
      <td
        class="right num"
        title={`${r.estimated_driver_ms} ms; ${plural(r.num_device_alloc, 'allocation')}, ${plural(r.num_device_free, 'free')}`}
      >
        ~{driver(r.estimated_driver_ms)}
      </td>
      <td class="right num">{count(r.num_alloc_retries)}</td>
      <td>
        {(r.recorded || r.export) && (
          <Go screen="segments" change={{ event: at, ...variantOf(r, question) }} title="The segments as they would be then">
            {f ? 'at the failure' : 'at the peak'}
          </Go>
        )}
      </td>
      <td class="line">
        {!r.recorded && r.export && (
          <>
            <code title={r.export}>{r.export}</code>{' '}
            <span title={r.export}>
              <Copy text={r.export} label="Copy" />
            </span>
          </>
        )}
      </td>
    </tr>
  );
}

// Against is the peak against that of the recorded settings. The peak of a run that
// ended at a failure goes only up to there, so it is compared with no other.
function Against({ r, against }: { r: Result; against: { own: Result; ended: boolean } | null }) {
  if (against === null) return <span class="muted">-</span>;
  if (!against.ended) return <Delta n={r.peak_reserved_bytes - against.own.peak_reserved_bytes} field="against" />;
  return (
    <span class="muted" data-field="against" title={uncompared(against.own)}>
      -
    </span>
  );
}

// uncompared says why peaks are not compared.
function uncompared(own: Result): string {
  if (!own.fails) return 'A run that ends at a failure is compared with no other: its peak goes only up to there.';
  return `The recorded run ${outcome(own, false)}, so its peak goes only up to there and is compared with no other.`;
}

// Lower says that settings which fail pass under a lower limit: then the cache is
// emptied at other moments.
function Lower({ r, choice }: { r: Result; choice: Choice | null }) {
  const n = choice?.smallest_limit_bytes ?? null;
  if (!r.fails || n === null || r.limit_bytes === null || n > r.limit_bytes) return null;
  return (
    <div
      class="muted small-text"
      data-field="passes-lower"
      title="A lower limit releases the cache at other moments, so more memory is not always better."
    >
      but passes under {sizeUp(n)}
    </div>
  );
}

// Conf is the text of settings, which may break behind its marks.
export function Conf({ conf }: { conf: string }) {
  const parts = confText(conf).split(/(?<=[,:_])/);
  return (
    <span class="mono">
      {parts.map((p, i) => (
        <>
          {i > 0 && <wbr />}
          {p}
        </>
      ))}
    </span>
  );
}

// Later is a number that takes longer than the rest.
function Later({ choice, waiting, n, field }: { choice: Choice | null; waiting: boolean; n: number | null; field: string }) {
  if (!choice) return <span class="muted">{waiting ? '…' : '-'}</span>;
  if (n === null)
    return (
      <span class="muted" data-field={field} title="The device is too small: the recording passes under no limit.">
        none
      </span>
    );
  return <Bytes n={n} field={field} />;
}

// Over says how much is missing. An inferred limit may be a byte short, which no
// rounded number shows.
function Over({ n, limit }: { n: number | null; limit: number | null }) {
  if (n === null || limit === null || n <= limit) return null;
  return (
    <div class="muted over-limit" title={`${exact(n - limit)} above the limit`}>
      {size(n - limit)} above the limit
    </div>
  );
}

function driver(ms: number): string {
  return ms >= 1e4 ? `${(ms / 1e3).toFixed(0)} s` : ms >= 1e3 ? `${(ms / 1e3).toFixed(1)} s` : `${ms.toFixed(0)} ms`;
}

// outcome is the verdict as the command writes it.
function outcome(r: Result, skip: boolean): string {
  const f = r.first_failure;
  if (!r.fails || !f) return 'passes';
  if (f.at_start) return 'fails at the beginning';
  if (skip) return `${count(r.num_ooms)} left out, first at ${count(f.event ?? 0)}`;
  return `fails at ${when(f)}`;
}

function when(f: Failure): string {
  const place = f.step !== null ? `, step ${f.step}` : f.since_start_us !== null ? `, ${seconds(f.since_start_us).replace(' ', '\u00a0')}` : '';
  return `${count(f.event ?? 0)}${place}`;
}

// Failures says for each run that fails which request failed first.
export function Failures({ answer }: { answer: Answer }) {
  const failing = answer.results.filter((r) => r.first_failure);
  if (failing.length === 0) return <p>Nothing fails.</p>;
  return (
    <ul class="rows">
      {failing.map((r) => {
        const f = r.first_failure!;
        return (
          <li data-failure={r.recorded ? 'recorded' : r.settings}>
            <details class="stack-line">
              <summary>
                <span class="bytes">
                  <Bytes n={f.at_start ? f.reserved_bytes : f.size_bytes} field="first_failure.size_bytes" />
                </span>
                <span class="failure-text">
                  {f.at_start ? (
                    <>
                      under <Conf conf={r.settings} />: reserved before the first event, after all that is cached was released; more than
                      there is
                    </>
                  ) : (
                    <>
                      requested under <Conf conf={r.settings} />
                      {f.site !== null ? ` at ${f.site}` : ', the file has no call stack of it'}; reserved{' '}
                      <Bytes n={f.reserved_bytes} />, allocated <Bytes n={f.allocated_bytes} />, largest free block{' '}
                      <Bytes n={f.largest_free_bytes} />
                    </>
                  )}
                  {f.looks_caught && <span class="muted"> (may be caught by {f.caught_by})</span>}
                </span>
              </summary>
              <Stack frames={f.stack} />
            </details>
          </li>
        );
      })}
    </ul>
  );
}
