// The task: what a person types, its columns, and the tokens a model reads.
//
// Digits are kept units first, as in Python: 445 for a 5-digit model is [5, 4, 4, 0, 0]. What a
// column does comes with the page: `layout.operation` holds the tables of `task/operation.py`.

const [PROPAGATE, GENERATE] = [1, 2]; // states, as Python numbers them

// The question in what a person typed, or the one line that says what is wrong with it.
function parseQuestion(text, { digits, operation }) {
  const { symbol, words } = operation;
  const typed = text.trim().replace(/=$/, "").trim();
  if (!typed) return { problem: `Type a ${words.question} such as 445${symbol}555.` };
  if (symbol !== "-" && /[-−]/.test(typed))
    return { problem: `This model only ${words.verb}, without minus signs.` };
  const stray = [...typed].find((letter) => letter !== symbol && !/[0-9\s]/.test(letter));
  if (stray)
    return { problem: `A ${words.question} has only digits and one “${symbol}”. Got “${stray}”.` };
  const parts = typed.split(symbol).map((part) => part.trim());
  if (parts.length !== 2 || !parts.every(Boolean)) {
    return { problem: `A ${words.question} is two numbers with one “${symbol}” between them.` };
  }
  if (parts.some((part) => /\s/.test(part)))
    return { problem: "A number has no spaces inside it." };
  const numbers = parts.map((part) => part.replace(/^0+(?=.)/, ""));
  const long = numbers.find((number) => number.length > digits);
  if (long) {
    const most = `${digits} digit${digits > 1 ? "s" : ""}`;
    return {
      problem: `This model ${words.verb} numbers of at most ${most}. One here has ${long.length}.`,
    };
  }
  const [first, second] = numbers.map((number) => toDigits(number, digits));
  return { question: { first, second } };
}

function toDigits(number, digits) {
  return [...number.padStart(digits, "0")].reverse().map(Number);
}

// The question as a person writes it: 445+555.
function questionText({ first, second }, { operation }) {
  const written = (number) =>
    [...number]
      .reverse()
      .join("")
      .replace(/^0+(?=.)/, "");
  return `${written(first)}${operation.symbol}${written(second)}`;
}

// For each answer digit, units first: the true digit, its task class and its look-ahead.
function columnsOf({ first, second }, { operation }) {
  const { raw, state, step, base, subtasks } = operation;
  const columns = [];
  let [carry, lookAhead] = [0, 0];
  for (let k = 0; k < first.length; k++) {
    const [a, b] = [first[k], second[k]];
    const passes = state[a][b] === PROPAGATE;
    const used = passes ? subtasks.uses_and_passes : subtasks.uses;
    const truth = (raw[a][b] + step * carry + base) % base;
    columns.push({ task: carry ? used : subtasks.base, lookAhead, carrying: carry === 1, truth });
    lookAhead = passes ? lookAhead + 1 : 0;
    if (!passes) carry = state[a][b] === GENERATE ? 1 : 0;
  }
  // The highest answer digit is the carry itself.
  const task = carry ? subtasks.uses : subtasks.base;
  columns.push({ task, lookAhead, carrying: carry === 1, truth: carry });
  return columns;
}

// The question as the tokens a model reads, up to and with "=".
function questionTokens({ first, second }, { symbols, operation }) {
  const [sign, equals] = [operation.symbol, "="].map((symbol) => symbols.indexOf(symbol));
  return [...[...first].reverse(), sign, ...[...second].reverse(), equals];
}

// The true answer as tokens, its sign included.
function trueAnswer(question, layout) {
  const digits = columnsOf(question, layout)
    .map((column) => column.truth)
    .reverse();
  return layout.signs ? [layout.symbols.indexOf(layout.operation.positive), ...digits] : digits;
}
