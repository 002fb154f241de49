import { span } from '../shared';

// silence is after how many seconds a job counts as silent: it sends each second.
const silence = 10;

export function Seen({ over, age }: { over: boolean; age: number }) {
  if (over) return <span class="muted">ended</span>;
  if (age < silence) return <span class="passes">now</span>;
  return <span class="fails num">{span(Math.round(age) * 1e6).replace('.00 ', ' ').replace('.000 ', ' ')} ago</span>;
}

// clock is a time of day, with the date if it is not today's.
export function clock(us: number, now: number): string {
  const at = new Date(us / 1000);
  const time = at.toLocaleTimeString('en-GB');
  return at.toDateString() === new Date(now / 1000).toDateString() ? time : `${at.toLocaleDateString('en-CA')} ${time}`;
}
