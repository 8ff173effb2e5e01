// Six steps for a person who has never seen an attention head. Each step sets up what it talks of.

class Tour {
  constructor(root, store, data) {
    Object.assign(this, { root, store, data, at: -1 });
    const part = (name) => root.querySelector(`[data-part=${name}]`);
    this.box = part("tour");
    this.count = part("tour-count");
    this.title = part("tour-title");
    this.text = part("tour-text");
    this.back = part("tour-back");
    this.next = part("tour-next");
    this.opener = part("tour-open");
    this.opener.addEventListener("click", () => this.show(0));
    this.back.addEventListener("click", () => this.show(this.at - 1));
    this.next.addEventListener("click", () => this.show(this.at + 1));
    part("tour-close").addEventListener("click", () => this.close());
    this.box.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  get open() {
    return this.at >= 0;
  }

  show(at) {
    const steps = tourSteps(this.data);
    if (at >= steps.length) return this.close();
    const step = steps[at];
    this.at = at;
    this.box.hidden = false;
    const { question } = parseQuestion(step.sum, this.data.layout.digits);
    this.store.change({ question, off: step.off, how: "mean", row: step.row });
    setText(this.count, `Step ${at + 1} of ${steps.length}`);
    setText(this.title, step.title);
    this.back.disabled = at === 0;
    setText(this.next, at === steps.length - 1 ? "Done" : "Next");
    this.point(step.where);
    this.title.focus({ preventScroll: true });
  }

  // The text of a step speaks of the answer that is there now.
  render(result) {
    if (this.open) setText(this.text, tourSteps(this.data)[this.at].text(result));
  }

  point(where) {
    for (const lit of this.root.querySelectorAll(".lit")) lit.classList.remove("lit");
    const place = where && this.root.querySelector(`[data-tour=${where}]`);
    if (!place) return;
    place.classList.add("lit");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    place.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  }

  close() {
    this.at = -1;
    this.box.hidden = true;
    this.point(null);
    this.store.change({ off: [] });
    this.opener.focus({ preventScroll: true });
  }
}

function tourSteps({ layout, examples, sayings }) {
  const { digits, firstRow, lastRow, positionNames } = layout;
  const easy = (examples.find((example) => example.label === "UC1") ?? examples[0]).sum;
  const hard = (examples.find((example) => example.label === "Cascade 2") ?? examples.at(-1)).sum;
  const row = Math.min(firstRow + layout.signs + 2, lastRow - 1);
  const writes = positionNames[row + 1];
  const key = Math.max(0, lastRow - 1 - row);
  const answers = ({ digits: told }) => told.map((digit) => digit.written).join("");
  return [
    {
      title: "It reads a sum, and writes the answer",
      where: "sum",
      sum: easy,
      off: [],
      row,
      text: (result) =>
        `The model sees the sum as a line of symbols, from left to right, and writes the answer one digit at a time, the highest first: ${answers(result)}. When it writes the first digit it has not added anything yet, so carries have to be foreseen.`,
    },
    {
      title: "Each digit is written from one row",
      where: "sum",
      sum: easy,
      off: [],
      row,
      text: () =>
        `A row is one step of that writing. At row “${layout.rowNames[row]}” it has just read ${positionNames[row]} and writes ${writes}. For that it needs column ${key} (D${key} and D'${key}) and the carry from the columns below. Every other row does the same one column further.`,
    },
    {
      title: "A head is a pair of eyes",
      where: "looks",
      sum: easy,
      off: [],
      row,
      text: () =>
        `An attention head looks back at symbols already there and copies something from them. Each map is one head, each line one row; the stronger a square, the more the head reads there. ${layout.heads} head${layout.heads > 1 ? "s" : ""} can read ${layout.heads} different places at the same time.`,
    },
    {
      title: "Together they climb down a staircase",
      where: "looks",
      sum: easy,
      off: [],
      row,
      text: () =>
        `Follow a map from top to bottom: a trained head moves one column to the right with every row, once in the first number and once in the second. That is the double staircase of the paper. ${sayings.staircase}`,
    },
    {
      title: "Take a head away",
      where: "removed",
      sum: easy,
      off: [`L0.H${baseHead(layout, sayings)}`],
      row,
      text: (result) =>
        `Here head H${baseHead(layout, sayings)} says nothing of its own any more: its output is its average over many sums. ${statusText(result, layout)} Click any head, row or square to try your own; Undo brings it back.`,
    },
    {
      title: "Where it fails",
      where: "sum",
      sum: hard,
      off: [],
      row: Math.max(firstRow + layout.signs, lastRow - 1 - Math.min(3, digits)),
      text: (result) =>
        `${hard} makes a carry that has to travel through columns that sum to 9 (they are marked). No head looks that far in a small model. It says ${answers(result)}: ${result.digits.every((digit) => digit.right) ? "right, this time" : "wrong"}. Now try sums of your own, and find where it breaks.`,
    },
  ];
}

// The head that reads each digit's own column, if the findings name one: without it all breaks.
function baseHead(layout, sayings) {
  const own = Object.entries(sayings.roles).find(
    ([name, role]) => name.startsWith("L0.") && role === "own column",
  );
  return own ? Number(own[0].split("H")[1]) : 0;
}
