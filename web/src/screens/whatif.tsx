export function WhatIf() {
  return <p>What-if</p>;
}
