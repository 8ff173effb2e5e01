// The report: tips on marks, saving, copying, where one is, and what a link opens.
(() => {
  "use strict";
  const tip = document.getElementById("tip");

  /* Tips */

  function showTip(event) {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const gap = 14;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + gap, innerWidth - width - 8);
    const above = event.clientY - height - gap;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + gap}px`;
  }
  for (const kind of ["pointermove", "pointerdown"]) document.addEventListener(kind, showTip);
  document.addEventListener("scroll", () => (tip.hidden = true), { capture: true, passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });

  /* Dark or light: as the reader's system has it, until the other is chosen */

  const root = document.documentElement;
  document.querySelector("[data-theme-toggle]").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
  });

  /* Saving */

  function save(button) {
    const shown = button.closest(".card").querySelector("[data-csv]");
    const svg = button.dataset.save === "svg";
    const content = svg ? standalone(shown.querySelector("svg")) : shown.dataset.csv;
    const type = svg ? "image/svg+xml" : "text/csv;charset=utf-8";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = `${shown.dataset.name}.${button.dataset.save}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // On its own a figure has no page to show its tips: they become titles, which browsers show.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    for (const mark of copy.querySelectorAll("[data-tip]")) {
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = mark.dataset.tip;
      mark.append(title);
      mark.removeAttribute("data-tip");
    }
    return new XMLSerializer().serializeToString(copy);
  }

  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // not allowed here: at least it is selected
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("main button");
    if (!button) return;
    if ("save" in button.dataset) save(button);
    else if ("copy" in button.dataset) copy(button);
  });

  /* Where one is */

  const links = new Map(
    [...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]),
  );
  const seen = new Set();
  function mark(entries) {
    for (const entry of entries) {
      if (entry.isIntersecting) seen.add(entry.target.id);
      else seen.delete(entry.target.id);
    }
    const here = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) {
      if (id === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  const observer = new IntersectionObserver(mark, { rootMargin: "-15% 0px -70% 0px" });
  for (const id of links.keys()) observer.observe(document.getElementById(id));

  /* A link to folded evidence opens it; a sum is a link into the explorer, which shows it. */

  function follow() {
    const place = document.getElementById(location.hash.slice(1));
    const folded = place?.querySelector(":scope > details");
    if (folded) folded.open = true;
    if (location.hash.length > 1 && !place) document.getElementById("try")?.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("a.sum, nav a")) setTimeout(follow);
  });
  follow();

  /* On paper nothing can be unfolded */

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.folded:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
})();
