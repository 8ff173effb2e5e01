// Parts of the model that can be taken away, and their names.
//
//   L0.H1            a head, at every row        P13.L0.H1    a head at one row
//   L0.MLP           the MLP, at every row       P13.L0.MLP   the MLP at one row
//   P13.L0           what stands at a row after the layer's block
//   P13.L0.H1.P2     one attention edge: what head 1 reads at position 2 while at row 13
//
// A part is set to zero or to its mean over the reference questions, as in Python. An edge
// has no value of its own: it is cut, and what the head still reads is scaled up to 1.

// Heads have one colour each, as in the report; after so many they begin again.
const HEADS = 6;

// The part of this name, or null if the model has none.
function parsePart(name, layout) {
  const match = /^(?:P(\d+)\.)?L(\d+)(?:\.(?:H(\d+)|(MLP)))?(?:\.P(\d+))?$/.exec(name);
  if (!match) return null;
  const [row, layer, head, , key] = match.slice(1).map((text) => (text ? Number(text) : null));
  const mlp = match[4] !== undefined;
  const kind = key !== null ? "edge" : head !== null ? "head" : mlp ? "mlp" : "row";
  const fits =
    layer < layout.layers &&
    (head === null || head < layout.heads) &&
    (!mlp || layout.dMlp > 0) &&
    (row === null ? kind !== "row" && kind !== "edge" : row < layout.lastRow) &&
    (key === null || (head !== null && key <= row));
  return fits ? { kind, layer, row, head, key } : null;
}

function partName({ kind, layer, row, head, key }) {
  const place = row === null ? `L${layer}` : `P${row}.L${layer}`;
  const tail = { head: `.H${head}`, mlp: ".MLP", row: "", edge: `.H${head}.P${key}` };
  return place + tail[kind];
}

// The same in words: "H1 at row A3".
function partWords(part, layout) {
  const layer = layout.layers > 1 ? `L${part.layer} ` : "";
  const at = part.row === null ? "" : ` at row ${layout.rowNames[part.row]}`;
  const words = {
    head: () => `${layer}H${part.head}${at}`,
    mlp: () => `${layer}MLP${at}`,
    row: () => `${layer}row ${layout.rowNames[part.row]}`,
    edge: () => `${layer}H${part.head}${at} reading ${layout.positionNames[part.key]}`,
  };
  return words[part.kind]();
}

// What is taken away, looked up by layer and row.
class Plan {
  constructor(names, how, layout) {
    this.how = how;
    this.places = new Map();
    for (const part of names.map((name) => parsePart(name, layout)).filter(Boolean)) {
      const rows = part.row === null ? layout.allRows : [part.row];
      for (const row of rows) this.place(part.layer, row).add(part);
    }
  }

  place(layer, row) {
    const where = `${layer}.${row}`;
    if (!this.places.has(where)) this.places.set(where, new Place());
    return this.places.get(where);
  }

  at(layer, row) {
    return this.places.get(`${layer}.${row}`) ?? NOTHING;
  }

  // Two plans do the same at a place if and only if this text is the same.
  key(layer, row) {
    const { heads, mlp, whole, cuts } = this.at(layer, row);
    if (!heads.size && !mlp && !whole && !cuts.size) return "";
    return [this.how, [...heads].sort(), mlp, whole, [...cuts].sort()].join("|");
  }
}

// What is taken away of one layer at one row. Cuts are texts "head.key".
class Place {
  constructor() {
    this.heads = new Set();
    this.cuts = new Set();
    this.mlp = false;
    this.whole = false;
  }

  add({ kind, head, key }) {
    if (kind === "head") this.heads.add(head);
    if (kind === "edge") this.cuts.add(`${head}.${key}`);
    if (kind === "mlp") this.mlp = true;
    if (kind === "row") this.whole = true;
  }
}

const NOTHING = new Place();
