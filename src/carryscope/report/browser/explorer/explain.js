// Why a digit is wrong, as far as attention shows it, in the words of `dissection/explaining.py`.

// A head reads a column if its two digits get more than half of the attention, as in Python.
const READS = 0.5;

// Attention to a column that is not read is mentioned from 1 % on.
const NOTICED = 0.01;

// What the digit k needs, and what the heads read while it is written at a row. The sign needs the
// columns from the highest down to the first whose digits differ.
function insight(result, row, layout) {
  const k = layout.lastRow - 1 - row;
  if (k < 0) return null;
  const shares = columnShares(result, row, layout);
  const read = new Map();
  for (let column = layout.digits - 1; column >= 0; column--) {
    const readers = shares.filter(({ share }) => share[column] > READS).map(({ name }) => name);
    if (readers.length) read.set(column, readers);
  }
  const { question } = result.state;
  const { deciding, carrying } = k > layout.digits ? signNeeds(question) : needs(k, question);
  const blind = [];
  for (let column = Math.min(k, layout.digits - 1); column >= (deciding ?? k); column--) {
    if (!read.has(column)) blind.push(column);
  }
  const glances = blind.flatMap((column) => shares.map(({ share }) => share[column]));
  return { k, read, blind, deciding, carrying, glance: Math.max(0, ...glances) };
}

function needs(k, question) {
  const { lookAhead, carrying } = columnsOf(question)[k];
  return { deciding: k ? Math.max(0, k - 1 - lookAhead) : null, carrying };
}

// The sign of a sum is always the same: it needs no column.
function signNeeds(question) {
  const { negative, highest } = inOrder(question);
  return { deciding: question.operation.signed ? Math.max(0, highest) : null, carrying: negative };
}

// The share of each head's attention that each column gets; a head taken away reads nothing.
function columnShares({ machine, state }, row, layout) {
  const { layers, heads, digits } = layout;
  const shares = [];
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      const away = [null, row].some((at) =>
        state.off.includes(partName({ kind: "head", layer, head, row: at })),
      );
      const pattern = machine.patternAt(layer, head, row);
      const share = Array.from({ length: digits }, (_, column) =>
        away ? 0 : (pattern[digits - 1 - column] ?? 0) + (pattern[2 * digits - column] ?? 0),
      );
      shares.push({ layer, head, name: `${layers > 1 ? `L${layer}` : ""}H${head}`, share });
    }
  }
  return shares;
}

// The sentence about a digit: why it is wrong, or what is read to write it.
function explanation(result, row, layout) {
  const found = insight(result, row, layout);
  if (!found) return "";
  const { name, written, truth, right, misled } = result.digits[row - layout.firstRow];
  const reads = found.read.size
    ? `the heads read ${columnWords([...found.read.keys()])}`
    : "no head reads a column";
  if (right) return `${name} is ${truth}, which is right. To write it, ${reads}.`;
  const wrong = `${name} is ${written} and should be ${truth}`;
  if (found.k > layout.digits) return signExplanation(found, wrong, reads);
  if (misled)
    return `${wrong}: a digit before it is wrong. After the true ones the model writes ${truth}.`;
  const origin = originWords(found, result.state.question);
  const carried = assumed(found, written, result.state.question, layout);
  const end = conclusion(found, name, carried, layout, result.state.question);
  return `${wrong}: ${origin}, and to write ${name} ${reads}. ${end}`;
}

function signExplanation({ deciding, blind }, wrong, reads) {
  if (deciding === null) return `${wrong}: the sign of every sum is the same.`;
  const unread = blind.length ? ` No head reads ${columnWords(blind)}.` : "";
  return `${wrong}: the digits of column ${deciding} decide it, and to write it ${reads}.${unread}`;
}

// Whether the digit would be right if a carry arrived, or if none did; null if it fits neither.
function assumed({ k, carrying }, written, question, { digits }) {
  const { first, second, operation } = inOrder(question);
  const { raw, step, base } = operation;
  const value = k < digits ? raw[first[k]][second[k]] : 0;
  const other = (value + step * (carrying ? 0 : 1) + base) % base;
  return written === String(other) ? !carrying : null;
}

function originWords({ k, deciding, carrying }, question) {
  const { first, second, operation } = question; // the words are about it as it is written
  const { words, state } = operation;
  if (deciding === null) return `no ${words.carry} can arrive at column 0`;
  if (carrying) return `the ${words.carry} is made in column ${deciding}`;
  const does = state[first[deciding]][second[deciding]];
  const below = does === PROPAGATE ? Array.from({ length: k }, (_, i) => k - 1 - i) : [deciding];
  const verb = (below.length > 1 ? words.columns : words.column)[does];
  return `no ${words.carry} arrives, because ${columnWords(below)} ${verb}`;
}

function conclusion({ k, read, blind, deciding, glance }, name, carried, { layers }, question) {
  const { carry } = question.operation.words;
  const wrote =
    carried === null
      ? `the digit is wrong with a ${carry} and without`
      : `the model wrote ${name} as if ${carried ? "a" : "no"} ${carry} arrived`;
  if (layers > 1) {
    return `${wrote[0].toUpperCase()}${wrote.slice(1)}. Lower layers may bring more to its row.`;
  }
  if (!read.size) return `${name} needs ${columnWords(blind)}.`;
  if (blind.length) {
    const most = glance >= NOTICED ? ` (at most ${percent(glance)} of a head's attention)` : "";
    const unread = `No head reads ${columnWords(blind)}${most}`;
    if (blind.includes(k)) return `${unread}, which ${name} needs.`;
    return `${unread}, ${carried === null ? "but" : "so"} ${wrote}.`;
  }
  if (deciding === null || carried === null) {
    return `The heads read every column that ${name} needs, but ${wrote}.`;
  }
  const readers = read.get(deciding);
  const verb = readers.length > 1 ? "read" : "reads";
  return `${listed(readers)} ${verb} column ${deciding} without effect: ${wrote}.`;
}

// "column 0", "columns 3, 2 and 1".
function columnWords(columns) {
  return `column${columns.length > 1 ? "s" : ""} ${listed(columns.map(String))}`;
}
