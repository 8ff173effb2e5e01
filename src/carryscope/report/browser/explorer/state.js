// What a person has chosen, how to go back, and a link that holds it.
//
//   #explorer?q=445+555&off=L0.H1,P13.L0.MLP&how=zero&row=13

const FRAGMENT = "#explorer?";

class Store {
  constructor(layout, state) {
    Object.assign(this, { layout, state, past: [], listeners: [], typing: false });
  }

  // Make a change that can be undone. Digits typed one after the other are one change.
  change(patch, { typing = false } = {}) {
    if (!(typing && this.typing)) this.past.push({ ...this.state, written: null });
    this.typing = typing;
    this.tell({ ...this.state, ...patch, written: null });
  }

  // Look at another row, or see what the tour shows: nothing that a person would want to undo.
  look(row) {
    if (row !== this.state.row) this.show({ row });
  }

  show(patch) {
    this.typing = false;
    this.tell({ ...this.state, ...patch });
  }

  toggle(name) {
    const off = this.state.off.filter((other) => other !== name);
    if (off.length === this.state.off.length) off.push(name);
    this.change({ off });
  }

  undo() {
    this.typing = false;
    if (this.past.length) this.tell({ ...this.past.pop(), row: this.state.row });
  }

  tell(state) {
    this.state = state;
    for (const listener of this.listeners) listener(state);
  }
}

function toFragment({ question, off, how, other, row }, layout) {
  const fields = [`q=${questionText(question)}`, `row=${row}`];
  if (off.length) fields.push(`off=${off.join(",")}`, `how=${how}`);
  if (off.length && how === "swap") fields.push(`from=${other}`);
  return FRAGMENT + fields.join("&");
}

// Keep the state in the address. A frame in a notebook has no address of its own.
function writeLink(fragment) {
  try {
    history.replaceState(null, "", fragment);
  } catch {
    // nothing is lost: the page shows the state
  }
}

// The state a link holds; what it lacks, or what this model does not have, is as in `otherwise`.
// Without a row, the row of the first wrong digit is shown.
function fromFragment(fragment, layout, otherwise) {
  if (!fragment.startsWith(FRAGMENT)) return null;
  const fields = new Map();
  for (const field of fragment.slice(FRAGMENT.length).split("&")) {
    const [name, value = ""] = field.split("=");
    fields.set(name, unescaped(value));
  }
  const { question } = parseQuestion(fields.get("q") ?? "", layout);
  const named = [...new Set((fields.get("off") ?? "").split(","))];
  const row = Number(fields.get("row") ?? NaN);
  return {
    question: question ?? otherwise.question,
    off: named.filter((name) => parsePart(name, layout)),
    how: ["zero", "swap"].includes(fields.get("how")) ? fields.get("how") : "mean",
    other: parseQuestion(fields.get("from") ?? "", layout).question
      ? fields.get("from")
      : otherwise.other,
    row: row >= layout.firstRow && row < layout.lastRow ? row : null,
    written: null,
  };
}

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
