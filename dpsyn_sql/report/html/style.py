"""The one style sheet of all pages: light and dark as the reader has set, narrow, wide, printed."""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2530; --soft: #5a6675; --line: #d5dbe3;
    --panel: #f4f6f9; --bar: #2f78b7; --error: #1d2530; --link: #1a5fa8; --warn: #fff4d6; --warn-line:
    #c98a00; --danger: #b3261e; --danger-ink: #ffffff; --second: #d9822b; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181e; --ink: #e6eaf0; --soft: #a3aebc; --line: #364150; --panel: #1d232c; --bar:
      #4f9bdc; --error: #e6eaf0; --link: #8cc1f2; --warn: #3a2f12; --warn-line: #e0ab3a; --danger:
      #f2b8b5; --danger-ink: #601410; --second: #eba45c; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere; font: 16px/1.55
    system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
footer { padding-bottom: 3rem; color: var(--soft); font-size: .875rem; }
p, ul, ol, dl { max-width: 46rem; }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 1.75rem; margin: 0 0 .5rem; }
h2 { font-size: 1.375rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1.0625rem; margin: 1.25rem 0 .25rem; }
section > h2 { border-top: 1px solid var(--line); padding-top: 1.25rem; }
a { color: var(--link); }
code { font-size: .9em; background: var(--panel); padding: .1em .3em; border-radius: 3px; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .5rem; }
.banner { background: var(--danger); color: var(--danger-ink); padding: .75rem 1rem; font-weight: 600;
    text-align: center; }
.lead { font-size: 1.125rem; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
nav ul { list-style: none; padding: 0; margin: .75rem 0; display: flex; flex-wrap: wrap; gap: .25rem
    1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 9.5rem), 1fr)); gap:
    .5rem; max-width: none; margin: 1rem 0; }
.facts > div { background: var(--panel); border-radius: 6px; padding: .5rem .75rem; }
.facts dt { color: var(--soft); font-size: .8125rem; }
.facts dd { margin: 0; font-size: 1.125rem; font-weight: 600; }
.box { background: var(--panel); border-left: 4px solid var(--bar); padding: .75rem 1rem; margin: 1rem
    0; max-width: 46rem; }
.box > :first-child, .card > :first-child { margin-top: 0; }
.box > :last-child, .card > :last-child { margin-bottom: 0; }
.warn { background: var(--warn); border-left-color: var(--warn-line); }
.cards { columns: 21rem; column-gap: 1rem; margin: 1rem 0; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; margin: 0 0 1rem;
    break-inside: avoid; }
.card p { margin: .25rem 0; font-size: .875rem; }
.card svg { max-width: 34rem; }
figure { margin: .5rem 0; }
figcaption { font-size: .875rem; color: var(--soft); }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 12px; }
svg text.soft { fill: var(--soft); }
svg .bar { fill: var(--bar); }
svg .other { fill: var(--soft); }
svg .second { fill: var(--second); }
svg .error { stroke: var(--error); stroke-width: 1.25; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .grid { fill: none; stroke: var(--line); }
.wide { overflow-x: auto; max-width: 100%; }
.wide > svg { width: auto; max-width: none; }
.wide table { overflow-wrap: break-word; }
table { border-collapse: collapse; font-size: .9375rem; max-width: 100%; }
caption { text-align: left; padding: .25rem 0; color: var(--soft); font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid
    var(--line); min-width: 3.5rem; }
th[scope=row] { min-width: 7rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td { overflow-wrap: break-word; }
td.number { white-space: nowrap; }
th[scope=col] { overflow-wrap: normal; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--link); padding: .2rem 0; }
details > :not(summary) { margin-left: .75rem; }
@media print {
  :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #fff; --bar: #2f78b7;
      --error: #000; --link: #000; --warn: #fff; --danger: #fff; --danger-ink: #000; --second: #d9822b;
      }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  nav, .skip { display: none; }
  body { font-size: 11pt; }
  body:has(> .banner) { display: table; width: 100%; }
  .banner { display: table-header-group; text-align: center; }
  .card, .box, tr, figure { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .wide { overflow: visible; }
  .wide > svg { width: 100%; }
}
"""
