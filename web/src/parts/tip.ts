// Where a tip stands: beside the pointer, inside what it belongs to.

export function placeTip(el: HTMLElement | null, at: { x: number; y: number }): void {
  if (!el) return;
  const around = el.parentElement!;
  const right = at.x > around.clientWidth * 0.6;
  el.style.left = right ? '' : `${at.x + 14}px`;
  el.style.right = right ? `${around.clientWidth - at.x + 14}px` : '';
  el.style.top = `${Math.min(at.y + 34, around.clientHeight - el.offsetHeight - 4)}px`;
}
