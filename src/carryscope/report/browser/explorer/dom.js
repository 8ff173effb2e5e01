// Elements. Text is always a text node, so nothing that is shown can become markup.

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function svg(tag, properties) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  return made;
}

// Write only what differs, so that the same value twice costs nothing.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A screen reader hears “false”; a style sheet sees no attribute at all.
function setAttribute(node, name, value) {
  const absent = value === null || (value === false && !name.startsWith("aria-"));
  if (absent) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Replace what is inside a box and leave the keyboard where it was, found again by its name.
function refill(box, children) {
  const name = box.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  box.replaceChildren(...children);
  if (name) box.querySelector(`[data-name="${CSS.escape(name)}"]`)?.focus();
}

// A share as `carryscope ask` writes it: two digits at most, and only all is 100 %.
function percent(share) {
  if (share >= 0.995 && share < 1) return ">99%";
  if (share >= 0.0995) return `${Math.round(share * 100)}%`;
  return `${Number((share * 100).toPrecision(2))}%`;
}

// "A3", "A3 and A2", "A3, A2 and A1".
function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
