// The six steps of the tour, for a person who has never seen an attention head.
//
// A step has a title, the place on the page it is about, the sum, the row and the parts taken
// away that it shows, and a text, which may speak of the result.

function tourSteps({ layout, examples, sayings }) {
  const sumOf = (label) => examples.find((example) => example.label === label)?.sum;
  const easy = examples[1].sum;
  const hard = sumOf("Cascade 2") ?? examples.at(-1).sum;
  const row = Math.min(layout.firstRow + layout.signs + 2, layout.lastRow - 1);
  const highestRow = layout.firstRow + layout.signs;
  const aboveNines = Math.max(highestRow, layout.lastRow - 1 - Math.min(3, layout.digits));
  const head = baseHead(sayings);
  const shown = { sum: easy, off: [], row };
  return [
    { ...shown, title: "It reads a sum and writes the answer", where: "sum", text: writing },
    {
      ...shown,
      title: "Each digit is written from one row",
      where: "sum",
      text: () => rowText(row, layout),
    },
    {
      ...shown,
      title: "A head is a way to look back",
      where: "looks",
      text: () => headText(layout),
    },
    {
      ...shown,
      title: "Row by row, down a staircase",
      where: "looks",
      text: () => staircaseText(sayings),
    },
    {
      ...shown,
      title: "Take a head away",
      where: "removed",
      off: [`L0.H${head}`],
      text: (result) => withoutText(head, statusText(result, layout)),
    },
    {
      ...shown,
      title: "Where it gets hard",
      where: "sum",
      sum: hard,
      row: aboveNines,
      text: (result) => hardText(hard, result, result.state.question.operation.words),
    },
  ];
}

function written({ digits }) {
  return digits.map((digit) => digit.written).join("");
}

function writing(result) {
  return [
    "The model sees the sum as a line of symbols, from left to right, and writes the answer one",
    `digit at a time, the highest first: ${written(result)}. So when it writes the first digit, it`,
    "must already know whether a carry will come up from all the digits below.",
  ].join(" ");
}

function rowText(row, layout) {
  const column = layout.lastRow - 1 - row;
  const [reads, writes] = [layout.positionNames[row], layout.positionNames[row + 1]];
  return [
    `A row is one step of that writing, and has the name of the digit that it writes. At row`,
    `${writes} the model has just read ${reads}. It needs column ${column} (D${column} and`,
    `D'${column}) and the carry that arrives there. The next row needs the next column.`,
  ].join(" ");
}

function headText({ heads }) {
  return [
    "An attention head looks back at the symbols so far and takes something over from them. Each",
    "map is one head, each line one row: the stronger a square, the more the head reads there.",
    heads > 1 ? `So ${heads} heads can read ${heads} different places at once.` : "",
    "Point at a line to read about it below.",
  ].join(" ");
}

function staircaseText({ staircase }) {
  return [
    "Follow a map from top to bottom. In the paper’s model every head moves one column to the",
    "right with each row, in the first number and in the second: a double staircase.",
    staircase ? `In this model: ${staircase}` : "Does this one do the same?",
  ].join(" ");
}

function withoutText(head, status) {
  return [
    `H${head} now says nothing of its own: its output is what it is on average, over many sums.`,
    `${status} Click any name or square to try your own, and Undo to bring it back.`,
  ].join(" ");
}

function hardText(sum, result, { carry, columns }) {
  const right = result.digits.every((digit) => digit.right);
  return [
    `In ${sum} a ${carry} travels through columns that ${columns[PROPAGATE]} (the underlined`,
    `ones). The digit above them is right only if that is foreseen. The model says`,
    `${written(result)}:`,
    `${right ? "right, this time" : "wrong"}. Now try sums of your own and find where it breaks.`,
  ].join(" ");
}

// The head that reads each digit's own column, if the findings name one: without it all breaks.
function baseHead({ roles }) {
  const own = Object.keys(roles).find((name) => /^L0\./.test(name) && roles[name] === "own column");
  return own ? Number(own.split("H")[1]) : 0;
}
