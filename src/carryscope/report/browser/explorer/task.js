// The task: what a person types, its columns, and the tokens a model reads.
//
// Digits are kept units first, as in Python: 445 for a 5-digit model is [5, 4, 4, 0, 0]. What a
// column does comes with the page: `layout.operations` holds the tables of `task/operation.py`, and
// each question has its own; `layout.operation` is the first, with the words for all of them.

const [KILL, PROPAGATE, GENERATE] = [0, 1, 2]; // states, as Python numbers them

// The question in what a person typed, or the one line that says what is wrong with it.
function parseQuestion(text, { digits, operation, operations }) {
  const { words } = operation;
  const symbols = operations.map(({ symbol }) => symbol);
  const named = symbols.map((symbol) => `“${symbol}”`).join(" or ");
  const typed = text.trim().replace(/=$/, "").trim().replace(/−/g, "-");
  if (!typed) return { problem: `Type a ${words.question} such as 445${symbols[0]}555.` };
  if (!symbols.includes("-") && typed.includes("-"))
    return { problem: `This model only ${words.verb}, without minus signs.` };
  const stray = [...typed].find((letter) => !symbols.includes(letter) && !/[0-9\s]/.test(letter));
  if (stray)
    return { problem: `A ${words.question} has only digits and one ${named}. Got “${stray}”.` };
  const asked = operations.find(({ symbol }) => typed.includes(symbol));
  const parts = typed.split(/[-+]/).map((part) => part.trim());
  if (parts.length !== 2 || !parts.every(Boolean)) {
    return { problem: `A ${words.question} is two numbers with one ${named} between them.` };
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
  return { question: { first, second, operation: asked } };
}

function toDigits(number, digits) {
  return [...number.padStart(digits, "0")].reverse().map(Number);
}

// The question as a person writes it: 445+555.
function questionText({ first, second, operation }) {
  const written = (number) =>
    [...number]
      .reverse()
      .join("")
      .replace(/^0+(?=.)/, "");
  return `${written(first)}${operation.symbol}${written(second)}`;
}

// The question with its numbers exchanged if the answer is negative: the smaller is taken away.
function inOrder({ first, second, operation }) {
  const highest = first.findLastIndex((digit, k) => digit !== second[k]);
  const negative = operation.signed && highest >= 0 && first[highest] < second[highest];
  const [larger, smaller] = negative ? [second, first] : [first, second];
  return { first: larger, second: smaller, operation, negative, highest };
}

// For each answer digit, units first: the true digit, its task class and its look-ahead.
function columnsOf(question) {
  const { first, second, operation } = inOrder(question);
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
  // The highest answer digit is the carry itself; of a difference, in order, there is none.
  const task = carry ? subtasks.uses : subtasks.base;
  columns.push({ task, lookAhead, carrying: carry === 1, truth: carry });
  return columns;
}

// The question as the tokens a model reads, up to and with "=".
function questionTokens({ first, second, operation }, { symbols }) {
  const [sign, equals] = [operation.symbol, "="].map((symbol) => symbols.indexOf(symbol));
  return [...[...first].reverse(), sign, ...[...second].reverse(), equals];
}

// The true answer as tokens, its sign included.
function trueAnswer(question, layout) {
  const digits = columnsOf(question)
    .map((column) => column.truth)
    .reverse();
  const { positive, symbol } = question.operation;
  const sign = inOrder(question).negative ? symbol : positive; // a minus for either
  return layout.signs ? [layout.symbols.indexOf(sign), ...digits] : digits;
}
