"""Building blocks of pages: escaped elements, charts in SVG, one style; a page needs neither network nor
JavaScript."""
