// Where the heads look: a map for each head, a row for each token it writes from.
//
// Each map is one stop of the tab key. Inside, arrows move; Enter or Space takes away the edge, or
// at the start of a row the head at that row.

// Maps in a line at most, where there is room.
const MOST_ACROSS = 5;

class LayerView {
  constructor(layer, store, { layout, sayings }, preview) {
    Object.assign(this, { layer, store, layout, sayings, preview });
    const last = layer === layout.layers - 1;
    this.rows = last ? layout.allRows.slice(layout.firstRow) : layout.allRows;
    this.maps = Array.from({ length: layout.heads }, (_, head) => new HeadMap(head, this));
    this.rest = new RestMap(this);
    const panels = [...this.maps, this.rest].map((map) => map.element);
    const title = layout.layers > 1 ? element("h4", {}, `Layer ${layer}`) : null;
    this.element = element(
      "div",
      { class: "layer" },
      title,
      element("div", { class: "maps" }, ...panels),
    );
    // Lines of equal length: six panels are three and three, not five and one.
    const lines = Math.ceil(panels.length / MOST_ACROSS);
    this.element.style.setProperty("--across", Math.ceil(panels.length / lines));
    this.element.style.setProperty("--positions", layout.lastRow);
    if (layout.digits > 8) this.element.style.setProperty("--label", "4.6rem");
  }

  render(result, row) {
    for (const map of [...this.maps, this.rest]) map.render(result, row);
  }
}

// What the maps have in common: rows of cells, a keyboard, and what is taken away.
class PartMap {
  constructor(view, title, role, whole, label) {
    Object.assign(this, { view, whole, lines: [] });
    const { store } = view;
    this.title = whole
      ? element(
          "button",
          { type: "button", class: "part", "data-name": whole, onclick: () => store.toggle(whole) },
          title,
        )
      : element("span", { class: "part" }, title);
    this.grid = element("div", { class: "map", role: "grid", "aria-label": label });
    this.element = element(
      "div",
      { class: "panel" },
      element("div", { class: "title" }, this.title, element("span", { class: "role" }, role)),
      this.grid,
    );
    this.grid.addEventListener("click", (event) => this.act(event.target));
    this.grid.addEventListener("keydown", (event) => this.move(event));
    this.grid.addEventListener("pointerover", (event) => view.preview(this.place(event.target)));
    this.grid.addEventListener("pointerleave", () => view.preview(null));
    this.grid.addEventListener("focusin", (event) => this.focused(event.target));
    this.grid.addEventListener("focusout", () => view.preview(null));
  }

  // A line of the map: its name, then its cells; each has the name of the part it takes away.
  line(row, first, cells) {
    const all = [first, ...cells];
    all.forEach((cell, column) => {
      cell.tabIndex = this.lines.length === 0 && column === 0 ? 0 : -1;
      cell.dataset.column = column;
    });
    const made = element("div", { class: "line", role: "row", "data-row": row }, ...all);
    this.lines.push({ row, element: made, cells: all });
    this.grid.append(made);
  }

  place(target) {
    const line = target.closest(".line[data-row]");
    const cell = target.closest("[data-name]");
    return line && { row: Number(line.dataset.row), name: cell?.dataset.name ?? null };
  }

  act(target) {
    const cell = target.closest("[data-name]");
    if (!cell) return;
    this.view.store.toggle(cell.dataset.name);
    this.view.store.look(this.answerRow(this.place(cell).row));
  }

  // An answer row stays chosen; a row of the question is shown only while one points at it.
  answerRow(row) {
    return row >= this.view.layout.firstRow ? row : this.view.store.state.row;
  }

  focused(target) {
    const place = this.place(target);
    if (!place) return;
    this.grid.querySelector('[tabindex="0"]').tabIndex = -1;
    target.tabIndex = 0;
    this.view.preview(place);
    if (target.matches(":focus-visible")) this.view.store.look(this.answerRow(place.row));
  }

  move(event) {
    const at = this.lines.findIndex(({ element }) => element.contains(event.target));
    const column = Number(event.target.dataset.column);
    const moves = {
      ArrowUp: [at - 1, column],
      ArrowDown: [at + 1, column],
      ArrowLeft: [at, column - 1],
      ArrowRight: [at, column + 1],
      Home: [at, 0],
      End: [at, (this.lines[at]?.cells.length ?? 1) - 1],
    };
    if (event.key === "Enter" || event.key === " ") this.act(event.target);
    else if (event.key in moves) {
      const [line, cell] = moves[event.key];
      const cells = this.lines[line]?.cells;
      cells?.[Math.min(cell, cells.length - 1)]?.focus();
    } else return;
    event.preventDefault();
  }

  render({ state }, row) {
    const off = new Set(state.off);
    if (this.whole) setAttribute(this.title, "aria-pressed", off.has(this.whole));
    setAttribute(this.element, "data-off", off.has(this.whole));
    for (const line of this.lines) {
      setAttribute(line.element, "data-look", line.row === row);
      for (const cell of line.cells) {
        const gone = off.has(cell.dataset.name);
        setAttribute(cell, "data-off", gone);
        if (cell.dataset.name) setAttribute(cell, "aria-selected", gone);
      }
      setAttribute(
        line.element,
        "data-off",
        off.has(line.cells[0].dataset.name) ||
          off.has(partName({ kind: "row", layer: this.view.layer, row: line.row })),
      );
    }
  }
}

// Two digits are read at once, so half of the attention is as much as one usually gets: from here
// on a square has its full shade.
const FULL_SHADE = 0.6;

class HeadMap extends PartMap {
  constructor(head, view) {
    const { layer, layout, sayings } = view;
    const name = partName({ kind: "head", layer, head, row: null });
    const role = sayings.roles[name] ?? (sayings.staircase ? "no staircase" : "");
    super(
      view,
      `H${head}`,
      role,
      name,
      `Attention of ${name}: rows downwards, what they read across`,
    );
    setAttribute(this.title, "aria-label", `H${head}: take this head away at every row`);
    this.element.dataset.head = head % HEADS;
    this.head = head;
    this.tokens = layout.allRows.map((p) =>
      element("span", { role: "columnheader", title: layout.positionNames[p] }),
    );
    this.grid.append(
      element(
        "div",
        { class: "line tokens", role: "row" },
        element("span", { role: "gridcell" }),
        ...this.tokens,
      ),
    );
    for (const row of view.rows) this.headLine(row);
  }

  headLine(row) {
    const { layer, layout } = this.view;
    const at = { layer, head: this.head, row };
    const name = partName({ kind: "head", ...at });
    const label = `Head ${this.head} at row ${layout.rowNames[row]}`;
    const properties = { role: "rowheader", "data-name": name, "aria-label": label };
    const first = element("span", properties, layout.rowNames[row]);
    const cells = layout.allRows.slice(0, row + 1).map((key) =>
      element("span", {
        class: "cell",
        role: "gridcell",
        "data-name": partName({ kind: "edge", ...at, key }),
      }),
    );
    this.line(row, first, cells);
  }

  render(result, row) {
    super.render(result, row);
    const { layer, layout } = this.view;
    this.tokens.forEach((token, p) => setText(token, layout.symbols[result.tokens[p]]));
    for (const line of this.lines) {
      const pattern = result.machine.patternAt(layer, this.head, line.row);
      line.cells.slice(1).forEach((cell, key) => this.shade(cell, line.row, key, pattern[key]));
    }
  }

  shade(cell, row, key, share) {
    const shown = percent(share);
    if (cell.dataset.share === shown) return;
    cell.dataset.share = shown;
    cell.style.setProperty("--share", Math.min(1, share / FULL_SHADE).toFixed(3));
    const { rowNames, positionNames } = this.view.layout;
    cell.setAttribute("aria-label", `${rowNames[row]} reads ${positionNames[key]}: ${shown}`);
  }
}

// The MLP at each row, and each row as a whole.
class RestMap extends PartMap {
  constructor(view) {
    const { layer, layout, sayings } = view;
    const mlp = layout.dMlp > 0;
    super(
      view,
      mlp ? "MLP" : "Rows",
      mlp ? "and whole rows" : "",
      mlp ? partName({ kind: "mlp", layer, row: null }) : null,
      "The MLP and the whole row, for each row",
    );
    if (mlp) setAttribute(this.title, "aria-label", "MLP: take it away at every row");
    this.grid.classList.add("rest");
    const heads = ["", ...(mlp ? ["MLP"] : []), "whole"].map((text) =>
      element("span", { role: text ? "columnheader" : "gridcell" }, text),
    );
    this.grid.append(element("div", { class: "line tokens", role: "row" }, ...heads));
    for (const row of view.rows) this.restLine(row, mlp, sayings);
  }

  restLine(row, mlp, sayings) {
    const { layer, layout } = this.view;
    const words = layout.rowNames[row];
    const cell = (kind, text, label) => {
      const name = partName({ kind, layer, row });
      const spoken = `${text}: ${label} at row ${words}`;
      const properties = {
        class: "node",
        role: "gridcell",
        "data-name": name,
        "aria-label": spoken,
      };
      return element("span", properties, text);
    };
    const node = partName({ kind: "mlp", layer, row });
    const carries = sayings.carries[node] ?? "MLP";
    const parts = mlp ? [cell("mlp", carries, "the MLP")] : [];
    parts.push(cell("row", "row", "all that stands"));
    this.line(row, element("span", { role: "rowheader" }, words), parts);
  }
}
