// Draws diagrams with the copy of Mermaid that the site holds, in the colours of the page. Without it their text stays.
(() => {
  const sources = new Map();
  const dark = () => document.body.getAttribute("data-md-color-scheme") === "slate";
  const draw = async () => {
    if (!window.mermaid) return;
    window.mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark() ? "dark" : "neutral" });
    let number = 0;
    for (const element of document.querySelectorAll(".diagram")) {
      if (!sources.has(element)) sources.set(element, element.textContent);
      const { svg } = await window.mermaid.render(`diagram-${number++}`, sources.get(element));
      element.innerHTML = svg;
      element.classList.add("drawn");
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  });
})();
