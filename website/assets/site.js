// What the theme makes in the browser, made usable by keyboard and screen reader: wide tables, blocks of code and the
// map of protocols can be scrolled with the arrow keys, and the copy button of a block is no landmark of the page.
const mend = () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), .md-typeset pre > code:not([tabindex]), p:has(> img[src$='which-protocol.svg']):not([tabindex])")) one.tabIndex = 0;
  for (const one of document.querySelectorAll("nav.md-code__nav:not([role])")) one.setAttribute("role", "none");
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
