// The ledger of a dry run in place of a plan: what a script takes, and which of its
// lines hold it.

import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { aborted, ask } from '../api';
import { count, share } from '../format';
import { Bytes, Count, Panel, Trouble, Wait } from '../parts/basic';
import type { Document as Answer } from '../types/dry.gen';
import type { Offer } from '../types/view.gen';
import { Levers } from './levers';
import { withFlags, type Question } from './question';
import { FitBar, Made, StepPanel, Totals, Trust } from './result';
import { edit, ledger } from './state';
import { failureText, verdict } from './words';

const answer = signal<Answer | null>(null);
const error = signal<string | null>(null);

// openLedger takes a file that is one by its name.
export function openLedger(file: File, o: Offer): boolean {
  if (!o.ledgers || !/\.dry(\.gz)?$/.test(file.name)) return false;
  ledger.value = file;
  answer.value = null;
  return true;
}

// pieces of the run: enough for a wide screen.
const curve = 900;

export function Dry({ file, q, o }: { file: File; q: Question; o: Offer }) {
  const { gpu, limit, settings } = q;
  useEffect(() => {
    const stop = new AbortController();
    const later = setTimeout(async () => {
      try {
        const init = { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file, signal: stop.signal };
        answer.value = await (await ask('dry', { name: file.name, gpu, limit, settings, curve }, init)).json();
        error.value = null;
      } catch (err) {
        if (!aborted(err)) error.value = String((err as Error).message);
      }
    }, 150);
    return () => {
      clearTimeout(later);
      stop.abort();
    };
  }, [file, gpu, limit, settings]);
  const a = answer.value;
  return (
    <>
      <p class="dry-head">
        <strong data-field="ledger">{file.name}</strong>{' '}
        <button class="small" data-act="close-ledger" onClick={() => (ledger.value = null)}>
          Close
        </button>
      </p>
      {error.value ? (
        <Trouble>
          <span data-field="dry-trouble">{error.value}</span>
        </Trouble>
      ) : (
        !a && <Wait>Reading the dry run</Wait>
      )}
      {a && !error.value && <Told a={a} q={q} o={o} />}
    </>
  );
}

function Told({ a, q, o }: { a: Answer; q: Question; o: Offer }) {
  const v = verdict(q.gpu || q.limit ? q : { ...q, gpu: a.card }, a, o);
  return (
    <>
      <section class="panel plan-verdict" data-panel="dry-verdict" aria-live="polite" data-fits={String(a.fits)}>
        <p class={'verdict' + (v.good === null ? '' : v.good ? ' good' : ' bad')}>
          <strong data-field="fits">{v.mark}</strong> <span data-field="verdict">{v.text}</span>
        </p>
        {a.first_failure && <p data-field="failure">{failureText(a.first_failure)}</p>}
        <FitBar q={q} a={a} o={o} />
        <p class="muted small-text">
          <code>{a.script.join(' ')}</code>: {count(a.steps)} steps as on {a.card}, torch {a.torch}, {count(a.events)} events
          {a.ended.startsWith('error') && `; it ended with an ${a.ended}`}
        </p>
      </section>
      <Totals a={a} before={null} />
      <div class="plan-grid">
        <div class="column">
          <StepPanel a={a} />
          <Made a={a} before={null} />
        </div>
        <div class="column">
          <Panel title="The script's lines" name="dry-lines" aside="what they hold at the peak">
            <div class="scroll" tabIndex={0} role="region" aria-label="Lines of the script">
              <table class="grid">
                <tbody>
                  {a.lines.map((l) => (
                    <tr>
                      <th scope="row" class="mono where">
                        {l.where}
                      </th>
                      <td class="right">
                        <Bytes n={l.bytes} field="bytes" />
                      </td>
                      <td class="right num">{share(l.bytes, a.peak_allocated_bytes)}</td>
                      <td class="muted">{l.mostly}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Panel>
          <Levers a={a} busy={false} onPull={(l) => edit((now) => withFlags(now, l.flags))} />
          <Notes a={a} />
          <Trust a={a} />
        </div>
      </div>
    </>
  );
}

// Notes are what was answered without numbers, and ops that nobody knows.
function Notes({ a }: { a: Answer }) {
  const rows = [...a.notes, ...a.unknown_ops.map((u) => ({ ...u, text: `${u.op}: its workspace is not known` }))];
  if (rows.length === 0) return null;
  return (
    <Panel title="Answered without numbers" name="dry-notes">
      <ul class="rows">
        {rows.map((n) => (
          <li>
            {n.text}{' '}
            <span class="muted">
              {n.where}, <Count n={n.count} /> times
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
