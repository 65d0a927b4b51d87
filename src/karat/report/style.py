"""The style of the report: calm, light and dark, wide and narrow, on paper too."""

STYLE = """
:root{color-scheme:light dark;--back:#fbfaf7;--card:#fff;--ink:#1d1d1b;--soft:#6b6a65;
--rule:#e4e2db;
--gold:#9a7314;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b8558f;--c4:#b97f00;--c5:#2f93c9;
--c6:#333;--c7:#7f7f7f}
@media(prefers-color-scheme:dark){:root{--back:#161614;--card:#1f1f1c;--ink:#ecebe6;
--soft:#a09e97;
--rule:#35342f;--gold:#e0b64a;--c0:#56b4e9;--c1:#ff8a4c;--c2:#3ccf9f;--c3:#e08fc0;--c4:#f0b93a;
--c5:#8fd0ff;
--c6:#ddd;--c7:#999}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",
Roboto,sans-serif}
header,main{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:36px}
.brand{margin:0;color:var(--gold);font-weight:600;letter-spacing:.14em;text-transform:uppercase;
font-size:12px}
h1{margin:.1em 0 .4em;font-size:30px;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:20px;margin:0 0 12px;font-weight:620}
h3{font-size:16px;margin:26px 0 6px;font-weight:600;white-space:pre-wrap;overflow-wrap:anywhere}
main>section{background:var(--card);border:1px solid var(--rule);border-radius:12px;
padding:22px 24px;
margin:0 0 22px}
.wide{overflow-x:auto}
.wide:focus-visible{outline:2px solid var(--gold);outline-offset:3px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
section>p{margin:0 0 12px;color:var(--soft)}
th,td{padding:6px 10px;text-align:left;border-bottom:1px solid var(--rule);white-space:pre}
td{overflow-wrap:anywhere}
thead th{font-weight:600;vertical-align:bottom;border-bottom:2px solid var(--rule)}
thead small{display:block;font-weight:400;color:var(--soft)}
tbody th{font-weight:600}
tr.start>*{border-top:2px solid var(--rule)}
.number{text-align:right}
.faint{color:var(--soft);text-align:right}
strong{font-weight:700;color:var(--gold)}
.notes{margin:12px 0 0;padding:0;list-style:none;color:var(--soft);font-size:13.5px}
.keys{display:flex;flex-wrap:wrap;gap:4px 18px;margin:0 0 8px;padding:0;list-style:none;
font-size:14px}
.key{display:inline-block;width:14px;height:4px;border-radius:2px;margin:0 7px 3px 0;
background:var(--line)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:16px}
figure{margin:0;min-width:0}
figcaption{font-size:13.5px;color:var(--soft);margin:0 0 2px;overflow-wrap:anywhere}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:11px}
svg .name,svg .value{fill:var(--ink)}
.grid{stroke:var(--rule);stroke-width:1}
.c0{--line:var(--c0)}.c1{--line:var(--c1)}.c2{--line:var(--c2)}.c3{--line:var(--c3)}
.c4{--line:var(--c4)}.c5{--line:var(--c5)}.c6{--line:var(--c6)}.c7{--line:var(--c7)}
.line{fill:none;stroke:var(--line);stroke-width:2;stroke-linejoin:round}
.dot,.bar{fill:var(--line)}
.band{fill:var(--line);opacity:.14}
@media(max-width:600px){main>section{padding:16px 14px;border-radius:8px}header,
main{padding-left:10px;
padding-right:10px}h1{font-size:24px}}
@media print{body{background:#fff}main>section{border:0;padding:0;break-inside:auto}
figure{break-inside:avoid}}
"""
