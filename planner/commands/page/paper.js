// Printing: copy the displayed report into this page, because browsers paginate a page but cut a frame.

const at = (id) => document.getElementById(id);

export function printReports() {
  addEventListener("beforeprint", copyReport);
  addEventListener("afterprint", () => {
    at("printed").hidden = true;
    at("printed").shadowRoot?.replaceChildren();
  });
}

function copyReport() {
  const frame = at("report"), inside = frame.contentDocument, place = at("printed");
  if (frame.hidden || !inside?.body) return;
  // A shadow tree keeps names and styles of the report apart from those of this page.
  const tree = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([...inside.querySelectorAll("style")].map((each) => each.textContent).join("\n"));
  tree.adoptedStyleSheets = [sheet];
  const copy = inside.body.cloneNode(true);
  for (const each of copy.querySelectorAll("style")) each.remove();
  // The policy of this page forbids inline styles, except those set by a script.
  const styles = [...copy.querySelectorAll("[style]")].map((each) => [each, each.style.cssText]);
  for (const [each] of styles) each.removeAttribute("style");
  tree.replaceChildren(...copy.childNodes);
  for (const [each, style] of styles) each.style.cssText = style;
  place.hidden = false;
}
