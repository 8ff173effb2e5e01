// The task: what a person types, its columns, and the tokens a model reads.
//
// Digits are kept units first, as in Python: 445 for a 5-digit model is [5, 4, 4, 0, 0].

// The question in what a person typed, or the one line that says what is wrong with it.
function parseQuestion(text, digits) {
  const typed = text.trim().replace(/=$/, "").trim();
  if (!typed) return { problem: "Type a sum such as 445+555." };
  if (/[-−]/.test(typed)) return { problem: "This model only adds, without minus signs." };
  const stray = typed.match(/[^0-9+\s]/u);
  if (stray) return { problem: `A sum has only digits and one “+”. Got “${stray[0]}”.` };
  const parts = typed.split("+").map((part) => part.trim());
  if (parts.length !== 2 || !parts.every(Boolean)) {
    return { problem: "A sum is two numbers with one “+” between them." };
  }
  if (parts.some((part) => /\s/.test(part)))
    return { problem: "A number has no spaces inside it." };
  const numbers = parts.map((part) => part.replace(/^0+(?=.)/, ""));
  const long = numbers.find((number) => number.length > digits);
  if (long) {
    const most = `${digits} digit${digits > 1 ? "s" : ""}`;
    return { problem: `This model adds numbers of at most ${most}. One here has ${long.length}.` };
  }
  const [first, second] = numbers.map((number) => toDigits(number, digits));
  return { question: { first, second } };
}

function toDigits(number, digits) {
  return [...number.padStart(digits, "0")].reverse().map(Number);
}

// The question as a person writes it: 445+555.
function questionText({ first, second }) {
  const written = (number) =>
    [...number]
      .reverse()
      .join("")
      .replace(/^0+(?=.)/, "");
  return `${written(first)}+${written(second)}`;
}

// What a column does with a carry: 1 makes one, 0 passes it on, -1 neither.
function stateOf(raw, { propagates, step }) {
  return Math.sign(step * (raw - propagates));
}

// For each answer digit, units first: the true digit, its task class and its look-ahead.
function columnsOf({ first, second }, operation) {
  const { raw, base, step, tasks } = operation;
  const columns = [];
  let carry = 0;
  let passing = 0;
  for (let k = 0; k <= first.length; k++) {
    const value = k < first.length ? raw[first[k]][second[k]] : 0;
    const state = k < first.length ? stateOf(value, operation) : -1;
    const task = !carry ? tasks.none : state === 0 ? tasks.passing : tasks.uses;
    const truth = (value + step * carry + base) % base;
    columns.push({ task, lookAhead: passing, carrying: carry === 1, truth });
    passing = state === 0 ? passing + 1 : 0;
    carry = state > 0 || (state === 0 && carry) ? 1 : 0;
  }
  return columns;
}

// The question as the tokens a model reads, up to and with "=".
function questionTokens({ first, second }, layout) {
  const plus = layout.symbols.indexOf("+");
  const equals = layout.symbols.indexOf("=");
  return [...[...first].reverse(), plus, ...[...second].reverse(), equals];
}

// The true answer as tokens, its sign included.
function trueAnswer(question, layout) {
  const digits = columnsOf(question, layout.operation)
    .map((column) => column.truth)
    .reverse();
  return layout.signs ? [layout.symbols.indexOf("+"), ...digits] : digits;
}
