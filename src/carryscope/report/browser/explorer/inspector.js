// One row in words: what it writes, what each head reads there, and what the findings say.

const TOKENS_SHOWN = 3;

class Inspector {
  constructor(root, store, { layout, sayings }) {
    Object.assign(this, { store, layout, sayings });
    this.title = root.querySelector("[data-part=row-title]");
    this.choices = root.querySelector("[data-part=row-choices]");
    this.parts = root.querySelector("[data-part=row-parts]");
    setText(root.querySelector("[data-part=source]"), sayings.source);
  }

  // `place` is what the pointer is over, or null: then it is the row that was chosen.
  render(result, row, place) {
    const { layout } = this;
    const answer = row - layout.firstRow;
    setText(this.title, this.titleOf(result, row, place));
    refill(this.choices, answer < 0 ? [] : this.likely(result.digits[answer]));
    const layers = Array.from({ length: layout.layers }, (_, layer) =>
      this.layer(result, layer, row),
    );
    refill(this.parts, layers.flat());
  }

  titleOf(result, row, place) {
    const { layout } = this;
    const name = layout.positionNames;
    const read = `“${layout.symbols[result.tokens[row]]}” (${name[row]})`;
    const reads = `Row ${layout.rowNames[row]} reads ${read}`;
    const writes = row < layout.firstRow ? "" : ` and writes ${name[row + 1]}`;
    const edge = place?.name ? parsePart(place.name, layout) : null;
    if (edge?.kind !== "edge") return `${reads}${writes}`;
    const share = result.machine.patternAt(edge.layer, edge.head, row)[edge.key];
    return `${reads}${writes} · H${edge.head} gives ${name[edge.key]} ${percent(share)}`;
  }

  // The digits that the model finds likeliest, as bars.
  likely({ chances, truth }) {
    const order = [...chances.keys()].sort((a, b) => chances[b] - chances[a]);
    return order.slice(0, TOKENS_SHOWN).map((token) => {
      const symbol = this.layout.symbols[token];
      const bar = element("span", { class: "bar" });
      bar.style.setProperty("--share", chances[token]);
      const mark = symbol === truth ? element("em", {}, "true") : null;
      return element(
        "li",
        {},
        element("b", {}, symbol),
        bar,
        element("span", {}, percent(chances[token])),
        mark,
      );
    });
  }

  layer(result, layer, row) {
    const { layout } = this;
    if (layer === layout.layers - 1 && row < layout.firstRow) return [];
    const heads = Array.from({ length: layout.heads }, (_, head) =>
      this.head(result, layer, head, row),
    );
    const mlp = layout.dMlp ? [this.part({ kind: "mlp", layer, row }, "MLP", null)] : [];
    const whole = this.part({ kind: "row", layer, row }, "Whole row", null, this.wholeRow(layer));
    return [...heads, ...mlp, whole];
  }

  wholeRow(layer) {
    const last = layer === this.layout.layers - 1;
    const reach = last
      ? "this row’s digit and no other, in any model, trained or not"
      : "every later row";
    return `All that stands at this row after layer ${layer}. It reaches ${reach}.`;
  }

  head(result, layer, head, row) {
    const pattern = result.machine.patternAt(layer, head, row);
    const most = [...pattern.keys()].sort((a, b) => pattern[b] - pattern[a]).slice(0, TOKENS_SHOWN);
    const cut = result.state.off
      .map((name) => parsePart(name, this.layout))
      .filter((part) => part.kind === "edge" && part.row === row)
      .filter((part) => part.layer === layer && part.head === head);
    const keys = [...new Set([...most, ...cut.map((part) => part.key)])].sort((a, b) => a - b);
    const at = { layer, head, row };
    const edges = keys.map((key) => this.edge({ kind: "edge", ...at, key }, pattern[key]));
    const column = element("span", { class: "column" }, this.columnRead(pattern));
    return this.part({ kind: "head", ...at }, `H${head}`, [column, ...edges]);
  }

  // The column that gets most of the attention, in words.
  columnRead(pattern) {
    const { digits } = this.layout;
    const share = (i) => (pattern[digits - 1 - i] ?? 0) + (pattern[2 * digits - i] ?? 0);
    const shares = Array.from({ length: digits }, (_, i) => share(i));
    const top = highest(shares);
    if (shares[top] <= READS) return "reads no one column";
    return `reads column ${top}: ${percent(shares[top])}`;
  }

  edge(part, share) {
    const name = partName(part);
    const off = this.store.state.off.includes(name);
    const shown = `${this.layout.positionNames[part.key]} ${off ? "cut" : percent(share)}`;
    const properties = {
      type: "button",
      class: "edge",
      "data-name": name,
      "data-off": off,
      "aria-label": `${shown}: ${off ? "put back" : "cut"} ${partWords(part, this.layout)}`,
      onclick: () => this.store.toggle(name),
    };
    return element("button", properties, shown);
  }

  part(part, title, reads, otherwise = "") {
    const { layout, sayings, store } = this;
    const whole = store.state.off.includes(partName({ ...part, row: null })) && part.kind !== "row";
    const off = store.state.off.includes(partName(part));
    const layer = layout.layers > 1 ? `L${part.layer} ` : "";
    const role = part.kind === "head" ? sayings.roles[`L${part.layer}.H${part.head}`] : null;
    const who = [element("b", {}, layer + title), element("span", { class: "role" }, role ?? "")];
    return element(
      "li",
      { "data-off": off || whole, "data-head": part.kind === "head" ? part.head % HEADS : null },
      element("div", { class: "who" }, ...who),
      element("div", { class: "reads" }, ...(reads ?? [])),
      element("p", {}, otherwise || this.said(partName(part))),
      whole ? element("span", { class: "role" }, "away at every row") : this.toggle(part, off),
    );
  }

  // What the findings say about a node.
  said(node) {
    const { nodes, looked } = this.sayings;
    return nodes[node] ?? (looked ? "Nothing was found about it." : "No findings about it.");
  }

  toggle(part, off) {
    const name = partName(part);
    const shown = off ? "Put back" : "Take away";
    const properties = {
      type: "button",
      class: "toggle",
      "data-name": name,
      "data-off": off,
      "aria-label": `${shown} ${partWords(part, this.layout)}`,
      onclick: () => this.store.toggle(name),
    };
    return element("button", properties, shown);
  }
}
