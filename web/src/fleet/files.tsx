// The table of all files, in the language of ashlar fleet query.

import { Bytes, Field, Panel, Select, count, place, plural, put, span, type Change } from '../shared';
import type { Column, QueryDocument } from '../types/answers.gen';
import type { State } from '../types/fleet.gen';
import { Answered, FileLink, To, day, quote, said, shortPath } from './parts';
import { useAnswer } from './state';

const rowsAtFirst = 100;

// groups are what files are often counted by.
const groups = ['run', 'run,commit', 'commit', 'cause', 'cause,run', 'line', 'host', 'settings', 'pytorch'];

const examples: readonly { text: string; change: Change }[] = [
  { text: 'all', change: { where: null, sort: null } },
  { text: 'failed', change: { where: 'failed' } },
  { text: 'of the last week', change: { where: 'age < 7d' } },
  { text: 'above 60 GiB', change: { where: 'peak_reserved_bytes > 60GiB', sort: '-peak_reserved_bytes' } },
];

export function FilesView({ s }: { s: State }) {
  const { where = '', group = '', show = '', sort = '', rows, columns } = place.value.params;
  const names = (show || (group ? '' : s.show)).split(',').map((n) => n.trim()).filter(Boolean);
  const answer = useAnswer<QueryDocument>('fleet/table', {
    where,
    group_by: group,
    // A row is opened by its hash.
    show: group || show === 'all' ? show : [...new Set([...names, 'hash'])].join(','),
    sort,
    limit: rows === 'all' ? null : rowsAtFirst,
  });
  const hidden = group || show === 'all' || names.includes('hash') ? null : 'hash';
  return (
    <Panel title="Files" name="files" aside={answer.data && matched(answer.data, s, group)}>
      <div class="fleet-tools">
        <Field label="Where" name="where" value={where} placeholder={'run =~ "llama.*" and peak_reserved_bytes > 60GiB'} width={52} onText={(v) => put({ where: v })} />
        <Select
          label="Group by"
          name="group"
          value={group}
          options={[{ value: '', text: 'nothing' }, ...[...new Set(group ? [...groups, group] : groups)].map((g) => ({ value: g, text: g.replace(',', ', ') }))]}
          onPick={(v) => put({ group: v, show: null, sort: null }, 'push')}
        />
        <Field label="Columns" name="show" value={show} placeholder={group ? 'as the group has them' : s.show} width={28} onText={(v) => put({ show: v })} />
      </div>
      <p class="small-text fleet-examples">
        {examples.map((x) => (
          <To change={x.change}>{x.text}</To>
        ))}
        <To change={{ columns: columns ? null : 1 }}>{columns ? 'hide the names of columns' : 'which columns are there?'}</To>
      </p>
      {columns && <p class="muted small-text">{s.columns.map((c) => `${c.name} (${c.kind})`).join(', ')}, tag.KEY (text)</p>}
      <Answered answer={answer} wait="Looking through the files">
        {(d) => <Table d={d} hidden={hidden} group={group} where={where} sort={sort} />}
      </Answered>
    </Panel>
  );
}

function matched(d: QueryDocument, s: State, group: string): string {
  const files = d.matched === s.files ? plural(s.files, 'file') : `${count(d.matched)} of ${plural(s.files, 'file')}`;
  return group ? `${files}, ${plural(d.total, 'group')}` : files;
}

function Table({ d, hidden, group, where, sort }: { d: QueryDocument; hidden: string | null; group: string; where: string; sort: string }) {
  const columns = d.columns.filter((c) => c.name !== hidden);
  if (d.rows.length === 0) return <p class="empty">No file is like that.</p>;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Files">
        <table class="grid fleet-table">
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Open</span>
              </th>
              {columns.map((c) => (
                <Head c={c} sort={sort} />
              ))}
            </tr>
          </thead>
          <tbody>
            {d.rows.map((r) => (
              <tr data-row={String(r['hash'] ?? '')}>
                <td>
                  {group ? (
                    <To change={{ where: within(where, group, r, d.columns), group: null, show: null, sort: null }}>files</To>
                  ) : (
                    <FileLink hash={String(r['hash'])}>open</FileLink>
                  )}
                </td>
                {columns.map((c) => (
                  <td class={c.kind === 'text' ? 'fleet-text' : 'right num'} title={c.kind === 'text' ? String(r[c.name] ?? '') : undefined}>
                    {value(c, r[c.name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {d.rows.length < d.total && (
        <p class="muted">
          {count(d.rows.length)} of {count(d.total)} rows.{' '}
          {place.value.params['rows'] === 'all' ? 'ashlar fleet query has all of them.' : <To change={{ rows: 'all' }}>Show more</To>}
        </p>
      )}
    </>
  );
}

// Head sorts by its column: numbers begin with the largest.
function Head({ c, sort }: { c: Column; sort: string }) {
  const up = sort === c.name;
  const down = sort === `-${c.name}`;
  const begins = c.kind === 'text' ? c.name : `-${c.name}`;
  const next = up || down ? (sort === begins ? (up ? `-${c.name}` : c.name) : null) : begins;
  return (
    <th scope="col" class={c.kind === 'text' ? '' : 'right'} aria-sort={up ? 'ascending' : down ? 'descending' : undefined}>
      <button class="link" data-sort={c.name} title={`Sort by ${c.name}`} onClick={() => put({ sort: next })}>
        {title(c)}
        {up ? ' ▲' : down ? ' ▼' : ''}
      </button>
    </th>
  );
}

function title(c: Column): string {
  return c.name.replace(/_(bytes|us)\b/, '').replaceAll('_', ' ');
}

function value(c: Column, v: unknown) {
  if (v === null || v === undefined || v === '') return <span class="muted">-</span>;
  if (c.kind === 'text') {
    const text = String(v);
    if (c.name === 'hash') return text.slice(0, 12);
    if (c.name === 'cause' && text !== 'none') return <span class="fails">{said(text)}</span>;
    return c.name === 'file' ? shortPath(text) : text;
  }
  if (typeof v === 'boolean') return v ? 'yes' : 'no';
  const n = Number(v);
  if (c.kind === 'bytes') return <Bytes n={n} />;
  if (c.kind === 'time') return day(n);
  return c.kind === 'duration' ? span(n) : count(n);
}

// within is the condition that chooses the files of a group.
function within(where: string, group: string, row: Record<string, unknown>, columns: readonly Column[]): string {
  const parts = group.split(',').map((name) => {
    const v = row[name.trim()];
    const kind = columns.find((c) => c.name === name.trim())?.kind;
    if (kind === 'text') return `${name} = ${quote(String(v ?? ''))}`;
    if (kind === 'bool') return `${v ? '' : 'not '}${name}`;
    return v === null ? `not (${name} <= 0 or ${name} > 0)` : `${name} = ${String(v)}`;
  });
  return [...(where ? [`(${where})`] : []), ...parts].join(' and ');
}
