"""A hook of MkDocs: LaTeX between `\\(` and `\\)`, or `\\[` and `\\]`, becomes MathML while the site is built.

Browsers show MathML by themselves, so that reading the site needs neither a script nor a network.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """The page with its mathematics as MathML."""
    content = BLOCK.sub(lambda found: convert(html.unescape(found[1]), display="block"), content)
    return INLINE.sub(lambda found: convert(html.unescape(found[1])), content)
