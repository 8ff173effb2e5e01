// The sum as it is written by hand, column under column, and below it the model's answer.

class SumView {
  constructor(root, store, { layout, examples }) {
    Object.assign(this, { store, layout });
    this.why = root.querySelector("[data-part=why]");
    this.input = root.querySelector("[data-part=input]");
    this.message = root.querySelector("[data-part=message]");
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("blur", () => this.settled());
    this.examples = examples.map((example) => this.example(example));
    root.querySelector("[data-part=examples]").append(...this.examples);
    this.box = root.querySelector("[data-part=columns]");
    this.build(this.box);
  }

  example({ label, sum, about }) {
    const pick = () => {
      const { question } = parseQuestion(sum, this.layout);
      this.store.change({ question });
      this.settled();
    };
    return element(
      "button",
      { type: "button", "data-sum": sum, onclick: pick },
      element("b", {}, about),
      element("span", {}, sum),
      element("span", { class: "code" }, label),
    );
  }

  // What is typed counts at once if it is a sum; if it is not, the last sum stays.
  typed() {
    const { question, problem } = parseQuestion(this.input.value, this.layout);
    setText(this.message, problem ?? "");
    setAttribute(this.input, "aria-invalid", problem ? "true" : null);
    if (question) this.store.change({ question }, { typing: true });
  }

  settled() {
    this.input.value = questionText(this.store.state.question);
    setText(this.message, "");
    setAttribute(this.input, "aria-invalid", null);
  }

  build(box) {
    const { digits, answerNames } = this.layout;
    box.style.setProperty("--columns", answerNames.length);
    this.cells = { first: [], second: [] };
    this.arrow = new Arrow(box.querySelector(".arrow"), answerNames.length);
    const row = (kind) =>
      answerNames.map((_, place) => element("span", { class: kind, "data-place": place }));
    [this.carries, this.readers] = [row("carry"), row("reader")];
    box.append(this.arrow.element, ...this.carries);
    for (const which of ["first", "second"]) {
      for (let k = answerNames.length - 1; k >= 0; k--) {
        const blank = element("span", { class: "blank", "aria-hidden": "true" });
        if (which === "second" && k === digits) this.symbol = blank;
        box.append(k < digits ? this.digit(which, k) : blank);
      }
    }
    box.append(...this.readers, element("span", { class: "rule", "aria-hidden": "true" }));
    this.cards = answerNames.map((name, place) => new AnswerCard(name, place, this));
    box.append(...this.cards.map((card) => card.element));
    this.lines = new Lines(box, this.layout, this.cells, this.symbol, this.cards);
  }

  digit(which, k) {
    const name = which === "first" ? `D${k}` : `D'${k}`;
    const cell = element("span", {
      class: "digit",
      role: "spinbutton",
      tabindex: "0",
      "aria-label": `${name}, digit ${k} of the ${which} number`,
      "aria-valuemin": "0",
      "aria-valuemax": String(this.layout.operation.base - 1),
      onkeydown: (event) => this.pressed(event, which, k),
    });
    this.cells[which][k] = cell;
    const step = (by, sign) =>
      element(
        "button",
        {
          type: "button",
          tabindex: "-1",
          "aria-hidden": "true",
          title: `${name} ${by > 0 ? "up" : "down"}`,
          onclick: () => this.step(which, k, by),
        },
        sign,
      );
    return element("span", { class: "stepper" }, step(1, "▴"), cell, step(-1, "▾"));
  }

  pressed(event, which, k) {
    const steps = { ArrowUp: 1, ArrowDown: -1, "+": 1, "-": -1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[0-9]$/.test(event.key)) {
      this.set(which, k, Number(event.key));
      this.cells[which][k - 1]?.focus();
    } else if (event.key in steps) this.step(which, k, steps[event.key]);
    else if (event.key === "ArrowLeft") this.cells[which][k + 1]?.focus();
    else if (event.key === "ArrowRight") this.cells[which][k - 1]?.focus();
    else return;
    event.preventDefault();
  }

  step(which, k, by) {
    const { base } = this.layout.operation;
    this.set(which, k, (this.store.state.question[which][k] + by + base) % base);
  }

  set(which, k, digit) {
    const number = [...this.store.state.question[which]];
    number[k] = digit;
    this.store.change(
      { question: { ...this.store.state.question, [which]: number } },
      { typing: true },
    );
    this.settled();
  }

  render(result) {
    const { question } = result.state;
    const { state, symbol } = question.operation;
    setText(this.symbol, symbol);
    for (const which of ["first", "second"]) {
      this.cells[which].forEach((cell, k) => {
        setText(cell, String(question[which][k]));
        setAttribute(cell, "aria-valuenow", question[which][k]);
        setAttribute(cell, "data-nine", state[question.first[k]][question.second[k]] === PROPAGATE);
      });
    }
    const sum = questionText(question);
    if (document.activeElement !== this.input && this.input.value !== sum) this.settled();
    for (const pick of this.examples) setAttribute(pick, "aria-pressed", pick.dataset.sum === sum);
    this.cards.forEach((card) => card.render(result));
  }

  // Where the columns do not fit, those around a newly chosen digit are shown.
  bringIntoSight(card) {
    if (card === this.seen) return;
    this.seen = card;
    this.box.scrollLeft = card.offsetLeft + (card.offsetWidth - this.box.clientWidth) / 2;
  }

  // The box never shrinks: what is below must not move away from under a pointer.
  say(words) {
    setText(this.why, words);
    this.tall = Math.max(this.tall ?? 0, this.why.offsetHeight);
    this.why.style.minHeight = `${this.tall}px`;
  }

  // What stands above and below the sum for one row: carries, who reads which column, and why.
  look(result, row) {
    const { digits, answerNames } = this.layout;
    const found = insight(result, row, this.layout);
    const place = (column) => answerNames.length - 1 - column;
    result.digits.forEach(({ carrying }, i) => setText(this.carries[i], carrying ? "1" : ""));
    for (let column = 0; column < digits; column++) {
      const readers = found?.read.get(column) ?? [];
      // With several layers another row may have read it.
      const blind = this.layout.layers === 1 && (found?.blind.includes(column) ?? false);
      setText(this.readers[place(column)], readers.join("+") || (blind ? "no head" : ""));
      const head = readers.length ? Number(readers[0].split("H")[1]) % HEADS : null;
      for (const part of [this.cells.first[column], this.cells.second[column]]) {
        setAttribute(part, "data-head", head);
        setAttribute(part, "data-blind", blind);
      }
    }
    const from = found?.deciding ?? null;
    this.arrow.point(from === null ? null : place(from), found && place(found.k), found?.carrying);
    this.bringIntoSight(this.cards[row - this.layout.firstRow].element);
    this.lines.render(result, row);
    this.say(explanation(result, row, this.layout));
    setAttribute(this.why, "data-wrong", found !== null && !result.digits[place(found.k)].right);
  }
}

// An arrow above the columns, from where a carry is decided to where it is needed.
class Arrow {
  constructor(element, columns) {
    this.element = element;
    [this.line, this.tip] = element.children;
    element.setAttribute("viewBox", `0 0 ${columns * 100} 40`);
  }

  point(from, to, carrying) {
    this.element.toggleAttribute("data-none", from === null);
    this.element.toggleAttribute("data-quiet", !carrying);
    if (from === null) return;
    const [x, end] = [from, to].map((place) => place * 100 + 50);
    this.line.setAttribute("d", `M${x},40 C${x},-8 ${end},-8 ${end},32`);
    this.tip.setAttribute("d", `M${end - 9},29 h18 l-9,10 z`);
  }
}

// One digit of the answer: what the model writes, how sure it is, and what the digit needs.
class AnswerCard {
  constructor(name, place, { store, layout }) {
    Object.assign(this, { name, place, layout, row: layout.firstRow + place });
    this.digit = element("b", {});
    this.mark = element("span", { class: "mark" });
    this.sure = element("span", { class: "sure" });
    this.task = element("span", { class: "task" });
    this.nines = element("span", { class: "nines" });
    this.code = element("span", { class: "code" });
    this.was = element("span", { class: "was" });
    const top = element("span", { class: "name" }, name, this.mark);
    const inside = [top, this.digit, this.sure, this.task, this.nines, this.was, this.code];
    const look = () => store.look(this.row);
    this.element = element(
      "button",
      { type: "button", class: "answer", "data-row": this.row, onclick: look },
      ...inside,
    );
  }

  render({ digits, state }) {
    const shown = digits[this.place];
    setAttribute(this.element, "data-unwritten", !isWritten(this.place, state));
    const before = this.digit.textContent;
    setText(this.digit, shown.written);
    if (before && before !== shown.written) this.flash();
    setText(this.mark, shown.right ? "✓" : "✗");
    setText(this.sure, percent(shown.probability));
    this.element.style.setProperty("--sure", shown.probability);
    const { words } = state.question.operation;
    setText(this.task, shown.task ? `${shown.carrying ? "a" : "no"} ${words.carry}` : "sign");
    setText(this.code, shown.task ?? "");
    setText(this.nines, shown.lookAhead ? ninesText(shown, words) : "");
    const missed = shown.right ? "" : `should be ${shown.truth}`;
    setText(this.was, shown.written === shown.clean ? missed : `was ${shown.clean}`);
    setAttribute(this.element, "data-right", shown.right);
    setAttribute(this.element, "data-broken", shown.broken);
    setAttribute(this.element, "aria-pressed", state.row === this.row);
    const there = isWritten(this.place, state);
    const spoken = there ? this.words(shown) : `${this.name}: not yet written`;
    setAttribute(this.element, "aria-label", spoken);
  }

  flash() {
    this.element.style.setProperty("--place", this.place);
    this.element.classList.remove("fresh");
    void this.element.offsetWidth; // so that the animation starts again
    this.element.classList.add("fresh");
  }

  words(shown) {
    const verdict = shown.right ? "right" : `wrong, it is ${shown.truth}`;
    const task = shown.task ? `, task ${shown.task}, look-ahead ${shown.lookAhead}` : "";
    const broken = shown.broken ? `, broken, was ${shown.clean}` : "";
    const sure = `${percent(shown.probability)} sure`;
    return `${this.name}: ${shown.written}, ${verdict}, ${sure}${task}${broken}`;
  }
}

// While the answer is played, its later digits are not there yet.
function isWritten(place, { written }) {
  return written === null || place < written;
}

function ninesText({ lookAhead, carrying }, { passing, passing_plural }) {
  const nines = `${lookAhead} ${lookAhead > 1 ? passing_plural : passing}`;
  return `${carrying ? "through" : "above"} ${nines}`;
}
