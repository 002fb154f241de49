// layoutFaults measures the page as it is laid out now: what lies outside of the
// window, which texts lie on each other, which are cut without an ellipsis and a
// title. Each fault is a line with selector, text and box.
window.layoutFaults = () => {
  const slack = 1.5; // px that rounding may take
  const faults = [];
  const root = document.querySelector('dialog:modal') ?? document.body;

  const name = (e) => {
    const parts = [];
    for (let at = e; at && at !== document.body && parts.length < 4; at = at.parentElement) {
      const own = at.id ? `#${at.id}` : [...at.classList].map((c) => `.${CSS.escape(c)}`).join('');
      const data = ['panel', 'field'].map((k) => (at.dataset?.[k] ? `[data-${k}="${at.dataset[k]}"]` : '')).join('');
      parts.unshift(at.localName + own + data);
    }
    return parts.join(' > ');
  };
  const short = (s) => JSON.stringify(s.trim().replace(/\s+/g, ' ').slice(0, 60));
  const text = (b) => `${b.left.toFixed(0)},${b.top.toFixed(0)} ${(b.right - b.left).toFixed(0)}x${(b.bottom - b.top).toFixed(0)}`;
  const both = (a, b) => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  });
  const empty = (b) => b.right - b.left < 0.5 || b.bottom - b.top < 0.5;
  const scrolls = (v) => v === 'auto' || v === 'scroll';
  const styles = new Map();
  const style = (e) => {
    if (!styles.has(e)) styles.set(e, getComputedStyle(e));
    return styles.get(e);
  };

  // Only for ears, or not there yet.
  const unseen = (e) => {
    if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return true;
    for (let at = e; at && at !== document.documentElement; at = at.parentElement) {
      const s = style(at);
      if (s.clipPath !== 'none') return true;
    }
    return false;
  };
  // What floats may lie over the rest: tips, heads of lists that stay while they scroll.
  const floats = (e) => {
    for (let at = e; at && at !== root; at = at.parentElement) {
      const s = style(at);
      if (s.position === 'sticky' || s.position === 'fixed' || at.matches('.tip, .reading')) return at;
    }
    return null;
  };

  // cut follows a box through the ancestors that clip it: hard is what is left of it
  // inside of its scroller, seen what is left in the window.
  const cut = (e, box) => {
    let hard = box;
    let scroller = null;
    let seen = box;
    let by = null;
    let fixed = false;
    for (let at = e; at && at !== document.documentElement; at = at.parentElement) {
      const s = style(at);
      if (at !== e && fixed) break;
      const b = at.getBoundingClientRect();
      const inner = {
        left: b.left + at.clientLeft,
        top: b.top + at.clientTop,
        right: b.left + at.clientLeft + at.clientWidth,
        bottom: b.top + at.clientTop + at.clientHeight,
      };
      const clips = (v) => v !== 'visible';
      if (s.display !== 'inline' && (clips(s.overflowX) || clips(s.overflowY))) {
        if (scrolls(s.overflowX) || scrolls(s.overflowY)) {
          scroller ??= at;
          seen = both(seen, inner);
        } else {
          if (!scroller) {
            const wide = hard.right > inner.right + slack || hard.left < inner.left - slack;
            const high = hard.bottom > inner.bottom + 4 || hard.top < inner.top - 4;
            if ((wide || high) && !by) by = { at, wide, high, inner };
            hard = both(hard, inner);
          }
          seen = both(seen, inner);
        }
      }
      if (s.position === 'fixed') fixed = true;
    }
    return { hard, seen, scroller, by };
  };

  const excused = (by) => {
    const titled = by.at.closest('[title]')?.title || by.at.querySelector('[title]')?.title;
    const dots = style(by.at).textOverflow === 'ellipsis' || style(by.at).webkitLineClamp !== 'none';
    return !by.high ? dots && titled : style(by.at).webkitLineClamp !== 'none' && titled;
  };

  const things = [];
  const add = (e, owner, what, box, isText) => {
    if (empty(box)) return;
    const c = cut(e, box);
    if (isText && c.by && !excused(c.by))
      faults.push(`cut: ${name(e)} ${what} at ${text(box)} by ${name(c.by.at)} at ${text(c.by.inner)}`);
    if (!c.scroller && !(c.by && excused(c.by)) && (c.hard.right > innerWidth + slack || c.hard.left < -slack || (!floats(e) && c.hard.bottom > innerHeight + slack)))
      if (!empty(c.hard)) faults.push(`outside: ${name(e)} ${what} at ${text(box)} in a window of ${innerWidth}x${innerHeight}`);
    const holder = e.closest('.panel, .item, button, dialog, .tools, .side, header, footer');
    if (isText && holder && !(c.scroller && holder.contains(c.scroller)) && !floats(e)) {
      const h = holder.getBoundingClientRect();
      if (c.hard.right > h.right + slack || c.hard.left < h.left - slack)
        faults.push(`sticks out: ${name(e)} ${what} at ${text(box)} of ${name(holder)} at ${text(h)}`);
    }
    things.push({ e, owner, what, ...c, over: floats(e) });
  };

  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || e.closest('select, option, script, style, textarea, datalist, svg') || unseen(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) {
      // The letters, not the line: fonts are higher than what they draw.
      const trim = (r.bottom - r.top) * 0.16;
      add(e, n, short(n.data), { left: r.left, right: r.right, top: r.top + trim, bottom: r.bottom - trim }, true);
    }
  }
  for (const e of root.querySelectorAll('button, select, textarea, input, a.button, meter, progress, svg, canvas, img')) {
    if (unseen(e) || e.type === 'file') continue;
    add(e, e, `<${e.localName}${e.name ? ` name=${e.name}` : ''}>`, e.getBoundingClientRect(), false);
  }

  const wide = document.documentElement;
  if (wide.scrollWidth > innerWidth + slack) faults.push(`outside: the page is ${wide.scrollWidth} wide in a window of ${innerWidth}`);
  if (wide.scrollHeight > innerHeight + slack) faults.push(`outside: the page is ${wide.scrollHeight} high in a window of ${innerHeight}`);

  // Pictures carry labels, so only their own edges count; the rest must not overlap.
  const solid = things.filter((t) => !t.e.closest('svg, canvas, meter, progress'));
  solid.sort((a, b) => a.hard.top - b.hard.top);
  solid.forEach((a, i) => {
    for (const b of solid.slice(i + 1)) {
      if (b.hard.top >= a.hard.bottom && b.seen.top >= a.seen.bottom) break;
      if (a.owner === b.owner || a.e.contains(b.e) || b.e.contains(a.e) || a.over !== b.over) continue;
      const area = a.scroller === b.scroller ? both(a.hard, b.hard) : both(a.seen, b.seen);
      if (area.right - area.left <= slack || area.bottom - area.top <= slack) continue;
      faults.push(`overlap: ${name(a.e)} ${a.what} at ${text(a.hard)} and ${name(b.e)} ${b.what} at ${text(b.hard)}`);
    }
  });
  return [...new Set(faults)];
};
