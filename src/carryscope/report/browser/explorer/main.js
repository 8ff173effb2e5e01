// The explorer: reads what the page holds, and from then on shows whatever is chosen.

class Explorer {
  constructor(root, data, tensors) {
    const { layout } = data;
    Object.assign(this, { root, data, layout, place: null });
    this.clean = new Transformer(layout, tensors);
    this.changed = new Transformer(layout, tensors, this.clean.firstLayer);
    this.failures = new Failures(root, data, (sum) => this.ask(sum));
    const linked = this.linked(this.first());
    this.store = new Store(layout, linked ? this.placed(linked) : this.first());
    const preview = (place) => this.preview(place);
    this.sum = new SumView(root, this.store, data);
    this.layers = Array.from(
      { length: layout.layers },
      (_, layer) => new LayerView(layer, this.store, data, preview),
    );
    root.querySelector("[data-part=layers]").append(...this.layers.map((view) => view.element));
    this.lapse = new Lapse(root, data, () => this.showRow());
    this.inspector = new Inspector(root, this.store, data);
    this.removed = new RemovedView(root, this.store, layout);
    this.player = new Player(root, this.store, layout, () =>
      this.placed({ ...this.store.state, row: null }).row,
    );
    this.tour = new Tour(root, this.store, data);
    this.store.listeners.push(() => this.render());
    if (!root.classList.contains("second")) {
      this.store.listeners.push(() => this.linkLater());
      window.addEventListener("hashchange", () => this.followLink());
    }
    this.render();
  }

  // What is shown at first: the hardest of the sums that the paper is about, two nines.
  first() {
    const { examples, start } = this.data;
    const hard = examples.find((example) => example.label === "Cascade 2") ?? examples.at(-1);
    const sum = start || hard.sum;
    const { digits, lastRow } = this.layout;
    return {
      ...parseQuestion(sum, this.layout),
      off: [],
      how: "mean",
      other: examples[1].sum,
      row: lastRow - 1 - Math.min(3, digits),
      written: null,
    };
  }

  // The state, at the row of the first wrong digit if it names none.
  placed(state) {
    if (state.row !== null) return state;
    const wrong = this.answer(state).digits.findIndex((digit) => !digit.right);
    const { firstRow, lastRow, digits } = this.layout;
    const row = wrong < 0 ? lastRow - 1 - Math.min(3, digits) : firstRow + wrong;
    return { ...state, row };
  }

  // Show a sum with nothing taken away, at its first wrong digit.
  ask(sum) {
    const { question } = parseQuestion(sum, this.layout);
    this.store.change(this.placed({ ...this.store.state, question, off: [], row: null }));
    this.sum.settled();
  }

  render() {
    this.result = this.answer(this.store.state);
    this.lapse.leave();
    this.sum.render(this.result);
    this.removed.render(this.result);
    this.showRow();
    this.tour.render(this.result);
  }

  // The maps and the words below them, for the row under the pointer or the one chosen.
  showRow() {
    const row = this.place?.row ?? this.store.state.row;
    const seen = { ...this.result, machine: this.lapse.at ?? this.result.machine };
    for (const layer of this.layers) layer.render(seen, row);
    this.inspector.render(this.result, row, this.place);
    this.sum.look(this.result, Math.max(row, this.layout.firstRow));
    for (const card of this.sum.cards) setAttribute(card.element, "data-look", card.row === row);
  }

  preview(place) {
    const same = place?.row === this.place?.row && place?.name === this.place?.name;
    this.place = place;
    if (!same) this.showRow();
  }

  answer(state) {
    const whole = this.clean.run(state.question, new Plan([], "mean", this.layout));
    const machine = state.off.length ? this.changed : this.clean;
    const plan = this.plan(state.off, state, { free: true });
    machine.donor = this.donors?.own;
    const given = state.off.length ? machine.run(state.question, plan) : whole;
    const digits = this.digits(state.question, given, whole);
    this.misled(state, digits);
    return { state, machine, tokens: given.tokens, digits };
  }

  // A digit is misled if it is wrong only because one before it is.
  misled(state, digits) {
    const first = digits.findIndex((digit) => !digit.right);
    const later = digits.filter((digit, place) => place > first && !digit.right);
    if (first < 0 || !later.length) return;
    const logits = this.askedFor(state, { free: false });
    for (const digit of later) {
      const written = this.layout.symbols[highest(logits[digits.indexOf(digit)])];
      digit.misled = written === digit.truth;
    }
  }

  // Each answer token, highest first: what is written, the truth, and what the digit needs.
  digits(question, given, whole) {
    const { answerNames, symbols, digits } = this.layout;
    const columns = columnsOf(question);
    const truths = trueAnswer(question, this.layout);
    return answerNames.map((name, place) => {
      const k = answerNames.length - 1 - place;
      const chances = probabilities(given.logits[place]);
      const written = symbols[given.answer[place]];
      const clean = symbols[whole.answer[place]];
      const truth = symbols[truths[place]];
      const { task = null, lookAhead = 0, carrying = false } = k <= digits ? columns[k] : {};
      const probability = chances[given.answer[place]];
      const right = written === truth;
      return {
        name,
        written,
        clean,
        truth,
        right,
        misled: false,
        broken: clean === truth && !right,
        chances,
        probability,
        task,
        lookAhead,
        carrying,
      };
    });
  }

  // The address holds what is shown; written once a person pauses, since browsers limit how often.
  linkLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => writeLink(toFragment(this.store.state, this.layout)), 250);
  }

  // What the address asks for. A cell of the report's failure map asks for a kind of sum.
  linked(otherwise) {
    const [, digit, ahead] = /[?]case=(A\d+)\.(\d+[-+])/.exec(location.hash) ?? [];
    const names = this.layout.answerNames;
    if (!names.includes(digit)) return fromFragment(location.hash, this.layout, otherwise);
    const { question } = parseQuestion(this.failures.example(digit, ahead), this.layout);
    return { ...otherwise, question, off: [], row: this.layout.firstRow + names.indexOf(digit) };
  }

  followLink() {
    const linked = this.linked(this.store.state);
    if (!linked) return;
    const state = this.placed(linked);
    const text = (shown) => toFragment(shown, this.layout);
    if (text(state) === text(this.store.state)) return;
    this.store.change(state);
    this.sum.settled();
  }

  // Show what another explorer shows: the same sum and digit, without the same parts.
  followOther({ question, off, how, other, row, written }, layout) {
    const asked = parseQuestion(questionText(question), this.layout).question;
    if (!asked) return;
    const { firstRow, lastRow } = this.layout;
    const here = Math.max(firstRow, lastRow - (layout.lastRow - row));
    this.store.show({
      question: asked,
      off: off.filter((name) => parsePart(name, this.layout)),
      how,
      other,
      row: here,
      written: written === null ? null : here - firstRow + 1,
    });
  }

  // For the console, and for tests: the logits of a sum with parts taken away, each row reading the
  // true answer (as Python's engine does), or what the model itself wrote.
  logits(sum, off = [], how = "mean", { free = false, other = "" } = {}) {
    const { question, problem } = parseQuestion(sum, this.layout);
    if (problem) throw new Error(problem);
    const unknown = off.find((name) => !parsePart(name, this.layout));
    if (unknown) throw new Error(`This model has no part ${unknown}.`);
    return this.askedFor({ question, off, how, other }, { free });
  }

  askedFor(state, { free }) {
    this.asked ??= this.machine();
    const plan = this.plan(state.off, state, { free });
    this.asked.donor = this.donors?.[free ? "own" : "true"];
    const forced = free ? null : trueAnswer(state.question, this.layout);
    return this.asked.run(state.question, plan, forced).logits;
  }

  machine() {
    return new Transformer(this.layout, this.clean.tensors, this.clean.firstLayer);
  }

  // What is taken away. If parts are exchanged, a machine of its own runs the sum that lends them:
  // it writes its own answer, or reads the true one, as the machine that borrows does.
  plan(off, { how, other }, { free }) {
    if (how !== "swap") return new Plan(off, how, this.layout);
    const { question } = parseQuestion(other, this.layout);
    if (!question) return new Plan([], "mean", this.layout);
    const which = free ? "own" : "true";
    this.donors ??= { own: this.machine(), true: this.machine() };
    const donor = this.donors[which];
    donor.kept ??= {};
    const forced = free ? null : trueAnswer(question, this.layout);
    donor.run(question, new Plan([], "mean", this.layout), forced);
    return new Plan(off, `${which} ${questionText(question)}`, this.layout);
  }
}

async function start(root) {
  const held = (name) => root.querySelector(`script[data-part=${name}]`);
  const data = JSON.parse(held("data").textContent);
  const tensors = await readWeights(held("weights").textContent, data.places);
  held("weights").remove(); // megabytes of text that are no longer needed
  root.explorer = new Explorer(root, data, tensors);
  root.querySelector("[data-part=waiting]").remove();
  root.setAttribute("aria-busy", "false");
  // In a long page a link to the explorer leads to it.
  const away = root.getBoundingClientRect().top > window.innerHeight;
  if (away && location.hash.startsWith(FRAGMENT)) root.scrollIntoView();
}

// What is done in one explorer of the page happens in the others too.
function linkTogether(explorers) {
  let following = false;
  for (const one of explorers) {
    const others = explorers.filter((other) => other !== one);
    const lead = (state) => {
      if (following) return;
      following = true;
      for (const other of others) other.followOther(state, one.layout);
      following = false;
    };
    one.store.listeners.push(lead);
  }
  if (explorers.length > 1) explorers[0].store.tell(explorers[0].store.state);
}

const roots = [...document.querySelectorAll(".carryscope-explorer")];
const starting = roots.map((root) =>
  start(root).catch((error) => {
    setText(
      root.querySelector("[data-part=waiting]") ?? root,
      `The explorer could not start: ${error.message}`,
    );
    throw error;
  }),
);
Promise.all(starting).then(() => linkTogether(roots.map((root) => root.explorer)));
